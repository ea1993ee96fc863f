/* Comforts of the box that answers by hand. Everything works without this as well. */
(function () {
    "use strict";

    const form = document.getElementById("compose");
    document.addEventListener("click", function (event) {
        for (const menu of document.querySelectorAll(".acts details.more[open]")) {
            if (!menu.contains(event.target)) menu.open = false;
        }
    });
    document.addEventListener("keydown", function (event) {
        const menu = event.key === "Escape" && event.target.closest(".acts details[open]");
        if (!menu) return;
        menu.open = false;
        menu.querySelector("summary").focus();
    });
    if (!form) return;
    const text = form.elements.text, quote = form.elements.quote, files = form.elements.pictures;
    const line = form.querySelector("[data-quoting]"), words = form.querySelector("[data-quoted]");

    function choose(pk, said) {
        quote.value = pk;
        words.textContent = said;
        line.hidden = !pk;
        text.focus();
        form.scrollIntoView({ block: "nearest" });
    }

    document.addEventListener("click", function (event) {
        const link = event.target.closest("[data-quote]");
        if (link) {
            const bubble = link.closest("li"), said = bubble && bubble.querySelector(".words");
            event.preventDefault();
            choose(link.dataset.quote, said ? said.textContent.trim().slice(0, 120) : "#" + link.dataset.quote);
        } else if (event.target.closest("[data-unquote]")) {
            event.preventDefault();
            choose("", "");
        }
    });
    text.addEventListener("keydown", function (event) {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
            event.preventDefault();
            form.requestSubmit();
        }
    });
    text.addEventListener("paste", function (event) {
        const pasted = Array.from(event.clipboardData.files).filter((one) => one.type.startsWith("image/"));
        if (!pasted.length) return;
        event.preventDefault();
        const all = new DataTransfer();
        for (const one of [...files.files, ...pasted]) all.items.add(one);
        files.files = all.files;
    });
    form.addEventListener("submit", function () {
        form.querySelector("button.default").disabled = true;
    });
    window.addEventListener("pageshow", function () {
        form.querySelector("button.default").disabled = false;
    });
})();
