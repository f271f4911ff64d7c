// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Times and durations, worded as kubectl does.

// duration returns milliseconds as kubectl prints them: 12s, 4m, 2d3h.
export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  if (s < 120) return `${s}s`;
  if (m < 10) return s % 60 === 0 ? `${m}m` : `${m}m${s % 60}s`;
  if (m < 180) return `${m}m`;
  if (h < 8) return m % 60 === 0 ? `${h}h` : `${h}h${m % 60}m`;
  if (h < 48) return `${h}h`;
  if (d < 8) return h % 24 === 0 ? `${d}d` : `${d}d${h % 24}h`;
  if (d < 730) return `${d}d`;
  return `${Math.floor(d / 365)}y`;
}

const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, y: 31536000 };

// milliseconds returns a duration as kubectl prints it, in milliseconds. It is undefined for other text.
export function milliseconds(text: string): number | undefined {
  if (!/^(\d+[smhdy])+$/.test(text)) return undefined;
  let s = 0;
  for (const [, n, unit] of text.matchAll(/(\d+)([smhdy])/g)) s += Number(n) * (units[unit!] ?? 0);
  return s * 1000;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// exact returns a time in full, in the time zone of the browser.
export function exact(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? time : full.format(at);
}

// number returns a number with separators, as in 1,000.
export function number(n: number): string {
  return n.toLocaleString("en-US");
}

// count returns a number with its noun.
export function count(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}
