// What every page of the admin has: the menu and closed filters on phones, and the token that
// htmx sends along.
"use strict";
{
    const button = document.getElementById("menu-button");
    const main = document.getElementById("main");
    const menu = document.getElementById("nav-sidebar");
    const show = (open) => {
        main.classList.toggle("menu-open", open);
        button.setAttribute("aria-expanded", String(open));
    };
    if (button && menu) {
        button.addEventListener("click", () => {
            const open = !main.classList.contains("menu-open");
            show(open);
            if (open) {
                (menu.querySelector("[aria-current]") || menu.querySelector("a")).focus();
            }
        });
        menu.addEventListener("keydown", (event) => {
            if (event.key === "Escape" && main.classList.contains("menu-open")) {
                show(false);
                button.focus();
            }
        });
    }

    const drawer = document.getElementById("filter-drawer");
    if (drawer && window.matchMedia("(max-width: 767px)").matches) {
        drawer.open = false; // the conditions in force stand above it, and the rows below
    }

    document.addEventListener("htmx:configRequest", (event) => {
        const token = document.querySelector('meta[name="csrf-token"]');
        if (token && event.detail.verb !== "get") {
            event.detail.headers["X-CSRFToken"] = token.content;
        }
    });
}
