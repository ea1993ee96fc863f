// A link that leads to a field of a form opens what the field is folded in, and the field is ready
// to be filled in. (Most browsers open it by themselves, and stop there.)
"use strict";
{
    const show = () => {
        const field = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
        if (!field || !field.closest("form")) {
            return;
        }
        for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) {
            fold.open = true;
        }
        field.scrollIntoView({ block: "center" });
        field.focus({ preventScroll: true });
    };
    show();
    window.addEventListener("hashchange", show);
}
