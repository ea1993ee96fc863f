/* Asks the browser for passkeys. Without this file, and where there are none, everything else works. */
"use strict";

(function () {
    function bytes(text) {
        const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
        return Uint8Array.from(plain, (sign) => sign.charCodeAt(0));
    }

    function written(buffer) {
        const plain = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
        return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
    }

    function described(credentials) {
        return (credentials || []).map((each) => ({ ...each, id: bytes(each.id) }));
    }

    function options(kind, given) {
        const wanted = { ...given, challenge: bytes(given.challenge) };
        if (kind === "create") {
            wanted.user = { ...given.user, id: bytes(given.user.id) };
            wanted.excludeCredentials = described(given.excludeCredentials);
        } else {
            wanted.allowCredentials = described(given.allowCredentials);
        }
        return wanted;
    }

    function answer(credential) {
        const response = {};
        ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"].forEach((name) => {
            if (credential.response[name]) { response[name] = written(credential.response[name]); }
        });
        if (credential.response.getTransports) { response.transports = credential.response.getTransports(); }
        return {
            id: credential.id,
            rawId: written(credential.rawId),
            type: credential.type,
            authenticatorAttachment: credential.authenticatorAttachment,
            clientExtensionResults: credential.getClientExtensionResults(),
            response: response,
        };
    }

    async function send(form, address, body) {
        const token = form.querySelector("[name=csrfmiddlewaretoken]").value;
        const reply = await fetch(address, {
            method: "POST",
            credentials: "same-origin",
            headers: { "Content-Type": "application/json", "X-CSRFToken": token },
            body: JSON.stringify(body),
        });
        if (reply.status === 401 && form.dataset.passkey === "create") { window.location.reload(); }  // which asks for the password
        if (!reply.ok) { throw new Error(reply.status === 429 || reply.status === 503 ? "slowed" : "refused"); }
        return reply.json();
    }

    async function run(form) {
        const kind = form.dataset.passkey;
        const given = await send(form, form.dataset.begin, {});
        let credential;
        try {
            credential = await navigator.credentials[kind]({ publicKey: options(kind, given) });
        } catch (error) {
            throw new Error("stopped");
        }
        const query = form.dataset.next ? "?next=" + encodeURIComponent(form.dataset.next) : "";
        const done = await send(form, form.dataset.complete + query, answer(credential));
        if (done.redirect_url) { window.location.assign(done.redirect_url); } else { window.location.reload(); }
    }

    function dress(form) {
        form.hidden = false;
        form.addEventListener("submit", async (event) => {
            event.preventDefault();
            const button = form.querySelector("[type=submit]");
            form.querySelectorAll("[data-error]").forEach((line) => { line.hidden = true; });
            button.disabled = true;
            try {
                await run(form);
            } catch (error) {
                const line = form.querySelector("[data-error=" + (["slowed", "stopped"].includes(error.message) ? error.message : "refused") + "]");
                line.hidden = false;
            } finally {
                button.disabled = false;
            }
        });
    }

    if (window.isSecureContext && window.PublicKeyCredential) {
        document.querySelectorAll("form[data-passkey]").forEach(dress);
        document.querySelectorAll("[data-passkeys-missing]").forEach((line) => { line.hidden = true; });
    }
})();
