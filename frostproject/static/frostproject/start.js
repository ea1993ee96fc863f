// Comforts of the start page: copying, and what is said of the chosen provider.
"use strict";
{
    const SECONDS_TOLD = 2;

    function copyOld(text) {
        // Over plain http browsers have no navigator.clipboard.
        const box = document.createElement("textarea");
        box.value = text;
        box.setAttribute("readonly", "");
        box.className = "visually-hidden";
        document.body.append(box);
        box.select();
        let done = false;
        try { done = document.execCommand("copy"); } catch { done = false; }
        box.remove();
        return done;
    }

    async function copy(text) {
        if (navigator.clipboard && window.isSecureContext) {
            try {
                await navigator.clipboard.writeText(text);
                return true;
            } catch { /* not permitted: the old way may be */ }
        }
        return copyOld(text);
    }

    function selectAll(element) {
        const range = document.createRange();
        range.selectNodeContents(element);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
    }

    document.addEventListener("click", async (event) => {
        const button = event.target.closest("button[data-copy]");
        if (!button) { return; }
        const source = document.getElementById(button.dataset.copy);
        const words = document.querySelector(".start").dataset;
        const before = button.dataset.before || button.textContent;
        button.dataset.before = before;
        const done = await copy(source.textContent);
        button.focus();
        if (!done) { selectAll(source); }
        button.textContent = done ? words.copied : words.select;
        setTimeout(() => { button.textContent = before; }, SECONDS_TOLD * 1000);
    });

    // What is chosen is kept in the form: the button is gone if the answer to an earlier click comes
    // before this one is sent.
    document.addEventListener("click", (event) => {
        const button = event.target.closest("#client-setup button[name]");
        const kept = button?.form.querySelector(`input[type=hidden][name="${button.name}"]`);
        if (kept) { kept.value = button.value; }
    }, { capture: true });

    // The button that showed the token is gone then: whoever uses the keyboard goes on here.
    document.addEventListener("htmx:afterSettle", () => {
        const hide = document.getElementById("hide-token");
        if (hide && document.activeElement === document.body) { hide.focus({ preventScroll: true }); }
    });

    const preset = document.getElementById("model-preset");
    const address = document.getElementById("model-address");
    function takePreset() {
        const chosen = preset.selectedOptions[0];
        document.querySelectorAll("[data-preset]").forEach((hint) => {
            hint.hidden = hint.dataset.preset !== preset.value;
        });
        const more = document.getElementById("model-more");
        more.open = more.open || "needsAddress" in chosen.dataset;
        document.getElementById("model-name").setAttribute("list", `models-${preset.value}`);
    }
    if (preset) {
        preset.addEventListener("change", () => {
            address.value = "";
            takePreset();
            document.getElementById("model-result").replaceChildren();
        });
        document.addEventListener("click", (event) => {
            const other = event.target.closest("button[data-address]");
            if (!other) { return; }
            document.getElementById("model-more").open = true;
            address.value = other.dataset.address;
        });
        document.addEventListener("htmx:afterSettle", () => {
            if (document.querySelector("#model-result .badge-succeeded")) {
                document.getElementById("model-key").value = "";
            }
        });
        takePreset();
    }
}
