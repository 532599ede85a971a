// Numbers as people read them: a dash for what is unknown, a tilde behind an estimate.

export const value = (number) =>
  number === null || number === undefined ? null : typeof number === "number" ? number : number.v;

const known = (number, show) => {
  const v = value(number);
  if (v === null) return "-";
  const mark = typeof number !== "object" ? "" : "sampled" in number ? "~" : "lost" in number ? "+" : "";
  return show(v) + mark;
};

export const count = (number) => known(number, (v) => Math.round(v).toLocaleString("en-US"));

const short = (v) => {
  const [scaled, unit] =
    Math.abs(v) < 999.5 ? [v, ""] : Math.abs(v) < 999500 ? [v / 1e3, " k"] : [v / 1e6, " M"];
  const digits = Math.abs(scaled) < 9.995 && unit ? 2 : Math.abs(scaled) < 99.95 && scaled % 1 > 0.05 ? 1 : 0;
  return scaled.toFixed(digits) + unit;
};

export const rate = (number) => known(number, (v) => {
  const text = short(v);
  return text.includes(" ") ? `${text}/s` : `${text} /s`;
});

export const time = (number) => known(number, (ns) => {
  const size = Math.abs(ns);
  const [v, unit] =
    size < 999.5 ? [ns, "ns"] : size < 999.5e3 ? [ns / 1e3, "us"] : size < 999.5e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  return `${v.toFixed(Math.abs(v) < 9.95 && unit !== "ns" ? 1 : 0)} ${unit}`;
});

export const percent = (number) => known(number, (v) => `${Math.round(v * 100)}%`);

export const typeName = (name) => {
  const at = name.indexOf("<");
  const path = at < 0 ? name : name.slice(0, at);
  return path.split("::").slice(-2).join("::") + (at < 0 ? "" : name.slice(at));
};

export const uptime = (ms) => {
  const s = Math.floor(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return s < 86400 ? clock : `${Math.floor(s / 86400)}d ${clock}`;
};
