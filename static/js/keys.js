/* The desk by keyboard. An element names its key in `data-key`: a button or a link is pressed, a field gets the focus.
   Keys count where nobody is typing; Escape leaves a field. `?` shows them all. */
(() => {
    const FIELDS = "input:not([type=checkbox]):not([type=radio]):not([type=hidden]), textarea, select, [contenteditable]";
    const rows = () => [...document.querySelectorAll("#result_list a[href*='/change/']")];
    const stops = () => [...document.querySelectorAll(".desk-panel__head h2")];

    // On a Cyrillic keyboard the key of N says "т": then its place counts.
    function keyOf(event) {
        if (/^[\x20-\x7e]$/.test(event.key) || event.key.length > 1) return event.key;
        return /^Key[A-Z]$/.test(event.code) ? event.code.slice(3).toLowerCase() : event.key;
    }

    function isSeen(element) {
        return element.checkVisibility ? element.checkVisibility() : element.offsetParent !== null;
    }

    // Of buttons in the rows of a list, only that of the row which has the focus.
    function targetOf(key) {
        const row = document.activeElement?.closest?.("#result_list tr");
        const named = [...document.querySelectorAll("[data-key]")].filter((one) => one.dataset.key === key);
        return named.find((one) => (one.closest("#result_list") ? row?.contains(one) : true) && (isSeen(one) || one.closest("details")));
    }

    function press(target) {
        target.closest("details")?.setAttribute("open", "");
        if (target.matches(FIELDS)) {
            target.focus();
            target.scrollIntoView({ block: "nearest" });
        } else target.click();
    }

    function choose(place) {
        const field = document.querySelector("select[data-digits]");
        const option = field?.options[place === 0 ? 10 : place];
        if (!option) return false;
        field.value = option.value;
        for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
        return true;
    }

    function step(by) {
        const all = rows().length ? rows() : stops();
        const at = all.findIndex((one) => (rows().length ? one.closest("tr")?.contains(document.activeElement) : one === document.activeElement));
        const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
        if (!next) return;
        if (!rows().length) next.tabIndex = -1;
        next.focus();
        next.scrollIntoView({ block: rows().length ? "nearest" : "start" });
    }

    document.addEventListener("keydown", (event) => {
        if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
        if (document.querySelector("dialog[open]")) return;
        const key = keyOf(event);
        if (event.target.closest?.(FIELDS)) {
            if (key === "Escape") event.target.blur();
            return;
        }
        if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
        else if (key === "?") document.getElementById("desk-keys")?.showModal();
        else if (/^[0-9]$/.test(key)) {
            if (!choose(Number(key))) return;
        } else {
            const target = key.length === 1 && !event.repeat ? targetOf(key) : undefined;
            if (!target) return;
            press(target);
        }
        event.preventDefault();
    });

    document.addEventListener("click", (event) => {
        if (event.target.closest?.("[data-shows-keys]")) document.getElementById("desk-keys")?.showModal();
    });
})();
