/* Comforts for the form of a model endpoint. Everything works without this file. */
"use strict";

(function () {
    const SHOWN = 50;
    const field = (name) => document.getElementById(`id_${name}`);
    let words, presets, names = new Map();

    function isOwn(url) {
        return Boolean(url) && !Object.values(presets).some(
            (one) => one.url === url || one.others.some((other) => other.url === url));
    }

    function setUrl(url) {
        const input = field("base_url");
        if (input && !input.disabled && !isOwn(input.value.trim())) { input.value = url; }
    }

    function link(text, url) {
        const made = document.createElement("a");
        made.textContent = text;
        made.href = url;
        made.target = "_blank";
        made.rel = "noopener noreferrer";
        return made;
    }

    function showHint(preset) {
        const box = document.getElementById("provider-hint");
        box.replaceChildren();
        box.hidden = !preset || !(preset.hint || preset.keyUrl || preset.others.length);
        if (box.hidden) { return; }
        if (preset.hint) { box.append(`${preset.hint} `); }
        if (preset.keyUrl) { box.append(link(words.dataset.key, preset.keyUrl)); }
        if (preset.others.length) {
            const line = document.createElement("div");
            line.append(words.dataset.other);
            preset.others.forEach((other) => {
                const button = document.createElement("button");
                button.type = "button";
                button.className = "button";
                button.textContent = other.title;
                button.addEventListener("click", () => { setUrl(other.url); });
                line.append(" ", button, " ", link(words.dataset.key, other.keyUrl));
            });
            box.append(line);
        }
    }

    function currentPreset() {
        const select = field("preset");
        return select ? presets[select.value] : undefined;
    }

    function takePreset() {
        const preset = currentPreset();
        showHint(preset);
        names = new Map();
        if (preset) {
            Object.keys(preset.models).forEach((name) => names.set(name, 0));
            setUrl(preset.url);
            if (words.dataset.isNew) {
                set("streamed", preset.streamed);
                set("thinking", preset.thinking);
                field("filled").value = "1";
            }
        }
        offer();
    }

    function set(name, value) {
        const input = field(name);
        if (!input || input.disabled) { return; }
        if (input.type === "checkbox") {
            input.checked = Boolean(value);
        } else {
            input.value = value === null ? "" : String(value);
        }
    }

    function takeModel() {
        const preset = currentPreset();
        const name = field("model").value.trim();
        const facts = preset && preset.models[name];
        if (facts) {
            Object.entries(facts).forEach(([key, value]) => { set(key, value); });
        } else if (names.get(name) && !field("window").value) {
            set("window", names.get(name));
        }
    }

    /* Browsers cannot show ten thousand options: those that fit what was typed, the first of them. */
    function offer() {
        const typed = field("model").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
        const fitting = Array.from(names.keys()).filter((name) => typed.every((part) => name.toLowerCase().includes(part)));
        document.getElementById("endpoint-models").replaceChildren(...fitting.slice(0, SHOWN).map((name) => {
            const option = document.createElement("option");
            option.value = name;
            return option;
        }));
    }

    async function fetchModels(button, told) {
        button.disabled = true;
        told.className = "quiet";
        told.textContent = words.dataset.fetching;
        try {
            const answer = await fetch(words.dataset.modelsUrl, {
                method: "POST", body: new FormData(field("model").form), headers: { Accept: "application/json" },
                signal: AbortSignal.timeout(60000),
            });
            const body = await answer.json();
            if (body.models) {
                names = new Map(body.models);
                told.textContent = `${names.size} ${words.dataset.count}`;
                if (names.size === 1) { field("model").value = body.models[0][0]; }
                offer();
                takeModel();
                field("model").focus();
            } else {
                told.className = "failure words";
                told.textContent = Object.values(body.problems).flat().join("\n");
            }
        } catch (error) {
            told.className = "failure";
            told.textContent = words.dataset.failed;
        }
        button.disabled = false;
    }

    function addButton() {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "button";
        button.id = "fetch-models";
        button.textContent = words.dataset.fetch;
        const told = document.createElement("span");
        told.setAttribute("role", "status");
        button.addEventListener("click", () => { fetchModels(button, told); });
        field("model").after(" ", button, " ", told);
        document.querySelectorAll('.no-script, input[name="_fetch"]').forEach((one) => { one.hidden = true; });
    }

    document.addEventListener("DOMContentLoaded", () => {
        words = document.getElementById("endpoint-words");
        const data = document.getElementById("endpoint-presets");
        if (!words || !data || !field("model")) { return; }
        presets = JSON.parse(data.textContent);
        if (!field("model").disabled) { addButton(); }
        if (field("preset")) { field("preset").addEventListener("change", takePreset); }
        field("model").addEventListener("input", () => { offer(); });
        field("model").addEventListener("change", takeModel);
        const preset = currentPreset();
        showHint(preset);
        if (preset) { Object.keys(preset.models).forEach((name) => names.set(name, 0)); }
        offer();
        const hint = document.getElementById("provider-hint");
        const row = document.querySelector(".field-preset");
        if (hint && row) { row.append(hint); }
    });
})();
