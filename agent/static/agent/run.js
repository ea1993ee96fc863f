/* Keeps open what the reader has opened when the page of a run is refreshed. */
(function () {
    "use strict";

    let opened = [];

    function all() {
        return Array.from(document.querySelectorAll("#run details"));
    }

    function name(details) {
        const anchor = details.closest("[id]"), around = anchor === details ? details : anchor;
        return around.id + "/" + Array.from(around.querySelectorAll("details")).indexOf(details);
    }

    document.addEventListener("htmx:beforeSwap", function () {
        opened = all().filter((one) => one.open).map(name);
    });
    document.addEventListener("htmx:afterSwap", function () {
        for (const one of all()) {
            if (opened.includes(name(one))) one.open = true;
        }
    });
})();
