// Elements and words. What people wrote goes into the page as text, never as markup.

export const root = document.getElementById("playground");
export const $ = (id) => document.getElementById(id);

const words = JSON.parse($("play-words").textContent);

/** The text of the page's language by its name, with `{name}` filled. */
export function say(name, values = {}) {
  return (words[name] ?? name).replace(/\{(\w+)\}/g, (all, key) => visible(values[key] ?? all));
}

/** `text` without signs that turn the direction of what follows them. */
export function visible(text) {
  return String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** An element; properties that are none of the element's are attributes, `null` children are left out. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else if (value !== null) made.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child != null && child !== "") made.append(typeof child === "string" ? visible(child) : child);
  }
  return made;
}

export function button(label, onclick, properties = {}) {
  return el("button", { type: "button", class: "play-small", onclick, ...properties }, label);
}

/** POST a form to the server; its JSON, or an Error whose message is "signedOut" or "failed". */
export async function post(url, form = {}) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "X-CSRFToken": csrfToken() },
    body: new URLSearchParams(form),
    redirect: "manual",
  });
  if (answer.type === "opaqueredirect" || answer.status === 401) throw new Error("signedOut");
  if (answer.status === 403) throw new Error("forbidden");
  if (!answer.ok) throw new Error("failed");
  return answer.json();
}

function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}
