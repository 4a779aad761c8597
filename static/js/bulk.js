// Keeps the page of a running job up to date; without this script its reader presses "Look again".
(() => {
    const place = document.querySelector("[data-progress]");
    if (!place) return;
    const show = (name, text) => { document.querySelector(`[data-${name}]`).textContent = text; };
    const look = async () => {
        let told;
        try {
            const answer = await fetch(place.dataset.progress, { headers: { Accept: "application/json" } });
            if (!answer.ok) return;
            told = await answer.json();
        } catch {
            setTimeout(look, 10000); // the server is away: it will be back
            return;
        }
        if (told.state !== "RUNNING") { location.reload(); return; }
        place.querySelector("progress").value = told.percent;
        show("said", told.said);
        show("done", told.done);
        show("failed", told.failed);
        setTimeout(look, 2000);
    };
    setTimeout(look, 1000);
})();
