// Renders requests by the chat templates of public models, which @huggingface/ollama-utils holds, and
// by those that stdin brings along: {own: [[name, source]], shared: [request], special: [[request]]}.
// stdout: for each template its name, and the texts of the shared requests and of its special ones;
// null where it has no such role, or no tools.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Template } from "@huggingface/jinja";

const data = "./node_modules/@huggingface/ollama-utils/src/chat-template-automap.ts";
const source = readFileSync(fileURLToPath(new URL(data, import.meta.url)), "utf8");
// The package exports a function alone. Behind the type of the list, its source is plain data.
const list = source.slice(source.indexOf("= [") + 2).replace(/;\s*$/, "");
const packaged = new Function(`return ${list}`)().map((one) => [one.model, one.gguf]);

const { own, shared, special } = JSON.parse(readFileSync(0, "utf8"));
const rendered = [...packaged, ...own].map(([name, text], at) => {
  const template = new Template(text);
  return [name, [...shared, ...(special[at] ?? [])].map((one) => render(template, one))];
});
process.stdout.write(JSON.stringify(rendered));

function render(template, request) {
  const tokens = { bos_token: "<s>", eos_token: "</s>", add_generation_prompt: true };
  try {
    return template.render({ ...request, ...tokens });
  } catch {
    return null;
  }
}
