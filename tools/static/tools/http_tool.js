/* Comforts for forms with small tables. Everything works without this file. */
"use strict";

(function () {
    function addRow(table) {
        const number = Number(table.dataset.next);
        table.dataset.next = String(number + 1);
        const row = table.querySelector("template").content.firstElementChild.cloneNode(true);
        row.querySelectorAll("[name]").forEach((input) => { input.name = input.name.replace("__number__", number); });
        table.querySelector("tbody").append(row);
        dress(row);
        row.querySelector("input, textarea").focus();
    }

    function dress(row) {
        const button = row.querySelector(".remove-row");
        button.hidden = false;
        button.addEventListener("click", () => row.remove());
    }

    function isEmpty(row) {
        return !Array.from(row.querySelectorAll("input[type=text], textarea")).some((input) => input.value.trim());
    }

    function dressTable(table) {
        const rows = Array.from(table.querySelectorAll("tbody tr"));
        rows.forEach(dress);
        rows.filter(isEmpty).slice(rows.every(isEmpty) ? 1 : 0).forEach((row) => row.remove());
        const button = table.querySelector(".add-row");
        button.hidden = false;
        button.addEventListener("click", () => addRow(table));
    }

    function follow(inputs, show) {
        inputs.forEach((input) => input.addEventListener("change", show));
        show();
    }

    function dressParameters(box) {
        const radios = Array.from(box.querySelectorAll("input[type=radio]"));
        follow(radios, () => {
            const chosen = radios.find((radio) => radio.checked);
            box.querySelectorAll(".way").forEach((way) => { way.hidden = way.dataset.way !== chosen.value; });
        });
    }

    /* A field of the form is shown for some values of another one, and always while it is complained of. */
    function showFor(name, field, values) {
        const select = document.querySelector(`select[name="${name}"]`);
        const row = document.querySelector(`.form-row.field-${field}`);
        if (select && row) {
            follow([select], () => { row.hidden = !values.includes(select.value) && !row.classList.contains("errors"); });
        }
    }

    function dressFilter(input) {
        const rows = () => Array.from(document.querySelectorAll(input.dataset.filter));
        input.addEventListener("input", () => {
            const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
            rows().forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
        });
    }

    function dressAll(box) {
        box.closest("label").hidden = false;
        box.addEventListener("change", () => {
            document.querySelectorAll(box.dataset.all).forEach((row) => {
                const tick = row.querySelector("input[type=checkbox]");
                if (tick && !row.hidden) { tick.checked = box.checked; }
            });
        });
    }

    document.addEventListener("DOMContentLoaded", () => {
        document.querySelectorAll(".rows-table").forEach(dressTable);
        document.querySelectorAll(".parameters").forEach(dressParameters);
        showFor("body_kind", "body", ["json", "text"]);
        showFor("body_kind", "form_fields", ["form"]);
        showFor("answer_kind", "answer_path", ["jsonpath"]);
        document.querySelectorAll("[data-filter]").forEach(dressFilter);
        document.querySelectorAll("[data-all]").forEach(dressAll);
    });
})();
