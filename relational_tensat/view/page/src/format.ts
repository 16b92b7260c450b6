/** Figures and names as people read them. */

/** Microseconds: three figures, and larger units from a thousand on. */
export function time(us: number | null | undefined): string {
  if (us === null || us === undefined) return "unknown";
  if (us === 0) return "0 µs";
  if (us >= 1e6) return `${(us / 1e6).toPrecision(3)} s`;
  if (us >= 1e4) return `${(us / 1e3).toPrecision(3)} ms`;
  return us >= 100
    ? `${us.toFixed(1)} µs`
    : us >= 1
      ? `${us.toFixed(2)} µs`
      : `${us.toPrecision(2)} µs`;
}

export function seconds(s: number): string {
  return s >= 1 ? `${s.toFixed(2)} s` : `${(s * 1000).toFixed(s >= 0.01 ? 0 : 1)} ms`;
}

/** Bytes: three figures, in powers of 1,024. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = n < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  const value = n / 1024 ** power;
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)} ${units[power] ?? ""}`;
}

export function count(n: number): string {
  return n.toLocaleString("en");
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(Math.abs(share) < 0.1 ? 2 : 1)} %`;
}

export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

/** A type without its element type where that is the common one: float32[1,64] → 1×64. */
export function shape(type: string): string {
  return type.replace(/float32\[([\d,]*)\]/g, (_, sizes: string) =>
    sizes === "" ? "scalar" : sizes.replaceAll(",", "×"),
  );
}

/** A long text with its middle left out. */
export function short(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}
