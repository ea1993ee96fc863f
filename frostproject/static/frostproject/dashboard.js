/* Draws the chart of the first page that is chosen from the table beside it, in the colours of the
 * page, and keeps the focus near an alert that was put away. */
(function () {
    "use strict";

    const drawn = [];

    function colour(name) {
        return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    }

    function number(text) {
        return text === "" || text === undefined ? null : Number(text);
    }

    function series(table) {
        const rows = Array.from(table.tBodies[0].rows);
        const heads = Array.from(table.tHead.rows[0].querySelectorAll("th"));
        return {
            labels: rows.map((row) => row.cells[0].textContent),
            datasets: heads.map((head, index) => ({
                label: head.textContent,
                colour: head.dataset.colour,
                borderColor: colour(head.dataset.colour),
                backgroundColor: colour(head.dataset.colour),
                data: rows.map((row) => number(row.cells[index + 1].dataset.value)),
                maxBarThickness: 18,
                borderWidth: 2,
                pointRadius: 2,
                spanGaps: true,
            })),
        };
    }

    function paint(chart) {
        const text = colour("--body-fg"), line = colour("--hairline-color");
        for (const one of chart.data.datasets) {
            one.borderColor = one.backgroundColor = colour(one.colour);
        }
        chart.options.color = text;
        for (const axis of Object.values(chart.options.scales)) {
            axis.ticks.color = text;
            axis.grid.color = line;
        }
        chart.update("none");
    }

    function draw(figure) {
        const holder = figure.querySelector(".canvas"), canvas = document.createElement("canvas");
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
        holder.append(canvas);
        holder.hidden = false;
        const chart = new Chart(canvas, {
            type: figure.dataset.kind,
            data: series(figure.querySelector("table")),
            options: {
                animation: false,
                maintainAspectRatio: false,
                interaction: { mode: "index", intersect: false },
                plugins: { legend: { position: "bottom", labels: { boxWidth: 12 } } },
                scales: {
                    x: { ticks: { maxRotation: 0, autoSkipPadding: 12 }, grid: { display: false } },
                    y: { beginAtZero: true, ticks: { maxTicksLimit: 5 }, grid: {} },
                },
            },
        });
        drawn.push(chart);
        paint(chart);
    }

    function repaint() {
        drawn.forEach(paint);
    }

    function drawShown() {
        for (const figure of document.querySelectorAll("figure.chart")) {
            if (figure.checkVisibility() && figure.querySelector(".canvas").hidden) draw(figure);
        }
    }

    /* What somebody has opened stays open while the numbers change. */
    let opened = [];
    document.addEventListener("htmx:beforeSwap", function (event) {
        opened = Array.from(event.detail.target.querySelectorAll("details[open]"), (one) => one.className);
    });
    document.addEventListener("htmx:afterSwap", function (event) {
        for (const one of event.detail.target.querySelectorAll("details")) {
            if (opened.includes(one.className)) one.open = true;
        }
        const after = { "overview-state": "alerts-title", "more": "more-title" }[event.detail.elt.id];
        if (after && document.activeElement === document.body && event.detail.requestConfig.elt.matches("form, a")) {
            document.getElementById(after).focus();
        }
    });
    if (typeof Chart === "undefined") return;
    drawShown();
    document.querySelectorAll(".switch input").forEach((one) => one.addEventListener("change", drawShown));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
