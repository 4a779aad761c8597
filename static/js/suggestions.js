/* The page of a case: buttons and keys that put what the session suggests into a field. The text comes as JSON and goes
   into `value`: nothing of it becomes HTML. Keys count where nobody is typing. */
(() => {
    const taken = new Map(); // field → what stood there before, and the button that changed it

    const values = () => JSON.parse(document.getElementById("case-suggestions")?.textContent ?? "{}");
    const fieldOf = (name) => document.getElementById(`id_${name}`);
    const buttonsOf = (name) => [...document.querySelectorAll("[data-suggestion-for]")].filter((b) => b.dataset.suggestionFor === name);

    function write(field, text) {
        field.value = text;
        for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
    }

    function mark(name, pressed) {
        for (const button of buttonsOf(name)) button.setAttribute("aria-pressed", String(button === pressed));
    }

    function take(button, { isSwitch }) {
        const name = button.dataset.suggestionFor;
        const field = fieldOf(name);
        const text = values()[name]?.[Number(button.dataset.suggestion)];
        if (!field || text === undefined) return;
        const before = taken.get(name)?.before ?? field.value;
        if (taken.get(name)?.button === button) {
            if (!isSwitch) return;
            taken.delete(name);
            write(field, before);
            mark(name, null);
            return;
        }
        taken.set(name, { before, button });
        write(field, text);
        mark(name, button);
    }

    function takeAll() {
        for (const name of Object.keys(values())) {
            const first = buttonsOf(name)[0];
            if (first && !taken.has(name)) take(first, { isSwitch: false });
        }
    }

    document.addEventListener("click", (event) => {
        const button = event.target.closest?.("[data-suggestion-for]");
        if (!button) return;
        if (button.dataset.suggestionFor) take(button, { isSwitch: true });
        else takeAll();
    });

    // Who writes on has made it their own: it is no longer to be taken back.
    document.addEventListener("input", (event) => {
        const name = event.isTrusted && event.target.id?.startsWith("id_") ? event.target.id.slice(3) : "";
        if (taken.delete(name)) mark(name, null);
    });

    document.addEventListener("keydown", (event) => {
        const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
        if (isTyping || event.ctrlKey || event.altKey || event.metaKey || !/^[0-9]$/.test(event.key)) return;
        const button = document.querySelector(`[data-suggestion-for][aria-keyshortcuts="${event.key}"]`);
        if (!button) return;
        event.preventDefault();
        button.click();
    });
})();
