// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares two texts line by line, for a view side by side.

export interface DiffLine {
  // kind is same, changed (both sides), added or removed.
  kind: "same" | "changed" | "added" | "removed";
  before?: string;
  after?: string;
  beforeNumber?: number;
  afterNumber?: number;
}

// mostEdits bounds the work: texts that differ more are shown as removed and added.
const mostEdits = 1500;

// diffLines returns the lines of both texts, with lines that belong together next to each other.
export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const kept = matches(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const pairs: [number, number][] = [];
  for (let i = 0; i < start; i++) pairs.push([i, i]);
  for (const [i, j] of kept) pairs.push([i + start, j + start]);
  for (let i = end; i > 0; i--) pairs.push([a.length - i, b.length - i]);
  return paired(a, b, pairs);
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

// matches returns the pairs of equal lines of a shortest edit, by Myers' algorithm.
function matches(a: string[], b: string[]): [number, number][] {
  const most = Math.min(a.length + b.length, mostEdits);
  const furthest = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let d = 0; d <= most; d++) {
    trace.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length);
    }
  }
  return [];
}

function walkBack(trace: Map<number, number>[], atA: number, atB: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [atA, atB];
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const previous = down ? k + 1 : k - 1;
    const fromX = furthest.get(previous) ?? 0;
    const fromY = fromX - previous;
    while (x > fromX && y > fromY && x > 0 && y > 0) pairs.push([--x, --y]);
    [x, y] = [fromX, fromY];
  }
  return pairs.reverse();
}

// paired lays both sides out: between two equal lines, the lines of both sides share rows.
function paired(a: string[], b: string[], pairs: [number, number][]): DiffLine[] {
  const out: DiffLine[] = [];
  let [i, j] = [0, 0];
  for (const [x, y] of [...pairs, [a.length, b.length] as [number, number]]) {
    while (i < x || j < y) {
      const [left, right] = [i < x, j < y];
      const line: DiffLine = { kind: left && right ? "changed" : left ? "removed" : "added" };
      if (left) [line.before, line.beforeNumber] = [a[i]!, ++i];
      if (right) [line.after, line.afterNumber] = [b[j]!, ++j];
      out.push(line);
    }
    if (x < a.length && y < b.length) out.push({ kind: "same", before: a[x]!, after: b[y]!, beforeNumber: ++i, afterNumber: ++j });
  }
  return out;
}

// middle splits two lines into what they share at the beginning, what differs, and what they share at the end.
export function middle(before: string, after: string): { start: string; before: string; after: string; end: string } {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return {
    start: before.slice(0, start),
    before: before.slice(start, before.length - end),
    after: after.slice(start, after.length - end),
    end: end === 0 ? "" : before.slice(-end),
  };
}
