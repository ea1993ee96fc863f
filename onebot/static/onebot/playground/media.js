// Pictures, voice and files that go into a message as Base64.

import { $, root, say } from "./dom.js";
import { newId } from "./store.js";

const LIMIT = Number(root.dataset.mediaBytes);
const VOICE_RATE = 16_000;

/** A segment with the content of `file`; an Error in words where it is too large. */
export async function segmentOf(file, type) {
  if (file.size > LIMIT) throw new Error(say("tooLarge", { name: file.name, limit: LIMIT >> 20 }));
  const content = `base64://${await toBase64(file)}`;
  const name = file.name || "file";
  if (type === "file") return { type, data: { file: content, name, file_id: newId(), file_size: String(file.size) } };
  return { type, data: { file: content, name } };
}

export function toBase64(blob) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** The files in what was pasted or dropped: pictures, voice, others. */
export const filesIn = (data) =>
  [...(data?.files ?? [])].map((file) => ({ file, type: file.type.startsWith("image/") ? "image" : file.type.startsWith("audio/") ? "record" : "file" }));

let recorder = null;

/** Begin to record, or end it; `onVoice` gets the segment, `onError` words. */
export async function toggleRecording(onVoice, onError) {
  if (recorder) return recorder.stop();
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    return onError(say("noMicrophone"));
  }
  const pieces = [];
  recorder = new MediaRecorder(stream);
  recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
  recorder.addEventListener("stop", async () => {
    recorder = null;
    $("play-record").textContent = say("record");
    stream.getTracks().forEach((track) => track.stop());
    const wave = await toWave(new Blob(pieces));
    onVoice(await segmentOf(new File([wave], "voice.wav", { type: "audio/wav" }), "record"));
  });
  recorder.start();
  $("play-record").textContent = say("stop");
}

/** Recorded sound as WAV with one channel, which everybody reads. */
async function toWave(blob) {
  const decoded = await new AudioContext({ sampleRate: VOICE_RATE }).decodeAudioData(await blob.arrayBuffer());
  const samples = decoded.getChannelData(0);
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const text = (at, said) => [...said].forEach((sign, index) => view.setUint8(at + index, sign.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  text(8, "WAVEfmt ");
  [[16, 16, 4], [20, 1, 2], [22, 1, 2], [24, VOICE_RATE, 4], [28, VOICE_RATE * 2, 4], [32, 2, 2], [34, 16, 2]].forEach(([at, value, size]) =>
    size === 4 ? view.setUint32(at, value, true) : view.setUint16(at, value, true),
  );
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, index) => view.setInt16(44 + index * 2, Math.max(-1, Math.min(1, sample)) * 0x7fff, true));
  return new Blob([view], { type: "audio/wav" });
}
