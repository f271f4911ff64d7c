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

// mostSteps bounds the work of comparing, so that large texts do not stop the page: what is left then is shown as removed and added.
const mostSteps = 3_000_000;

// plain is the number of lines up to which texts are compared as a whole. Longer ones are divided at lines that are unique in both.
const plain = 2000;

type Pair = [number, number];

// Range is a part of both texts: lines from a to endA, and from b to endB.
interface Range {
  a: number;
  endA: number;
  b: number;
  endB: number;
}

// diffLines returns the lines of both texts, with lines that belong together next to each other.
export function diffLines(before: string, after: string): DiffLine[] {
  const steps = diffSteps(before, after);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

// diffSteps does the same in steps, between which the page can do something else.
export function* diffSteps(before: string, after: string): Generator<undefined, DiffLine[]> {
  const [a, b] = [linesOf(before), linesOf(after)];
  yield;
  const texts = yield* numbered(a, b);
  yield;
  const ranges = divided(texts, { a: 0, endA: a.length, b: 0, endB: b.length });
  yield;
  const pairs: Pair[] = [];
  const work = { left: mostSteps };
  for (const range of ranges) compare(texts, range, work, pairs);
  yield;
  return paired(a, b, pairs);
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

interface Texts {
  a: Int32Array;
  b: Int32Array;
  // size is the number of different lines.
  size: number;
}

// numbered returns both texts with a number for each different line.
function* numbered(a: string[], b: string[]): Generator<undefined, Texts> {
  const numbers = new Map<string, number>();
  const number = (line: string): number => {
    let found = numbers.get(line);
    if (found === undefined) numbers.set(line, (found = numbers.size));
    return found;
  };
  const ofA = Int32Array.from(a, number);
  yield;
  return { a: ofA, b: Int32Array.from(b, number), size: numbers.size };
}

// divided returns the parts of long texts between lines that are unique in both and in the same order, as patience diff does. Each part
// begins with such lines. The time is that of a sort.
function divided(texts: Texts, whole: Range): Range[] {
  if (whole.endA + whole.endB <= plain) return [whole];
  const inA = places(texts.a, texts.size);
  const inB = places(texts.b, texts.size);
  const anchors: Pair[] = [];
  texts.a.forEach((line, i) => {
    if (inA[line]! >= 0 && inB[line]! >= 0) anchors.push([i, inB[line]!]);
  });
  const ranges: Range[] = [];
  let [from, next] = [{ a: 0, b: 0 }, { a: 0, b: 0 }];
  for (const [i, j] of increasing(anchors)) {
    if (i !== next.a || j !== next.b) {
      ranges.push({ ...from, endA: i, endB: j });
      from = { a: i, b: j };
    }
    next = { a: i + 1, b: j + 1 };
  }
  return [...ranges, { ...from, endA: whole.endA, endB: whole.endB }];
}

// places returns where each line is: -1 if it is missing, -2 if there are several.
function places(text: Int32Array, size: number): Int32Array {
  const all = new Int32Array(size).fill(-1);
  text.forEach((line, i) => (all[line] = all[line] === -1 ? i : -2));
  return all;
}

// increasing returns a longest part of the pairs, which are sorted by their first numbers, in which the second ones increase as well.
function increasing(pairs: Pair[]): Pair[] {
  const ends: number[] = [];
  const previous = new Int32Array(pairs.length);
  pairs.forEach(([, j], at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![1] < j) low = middle + 1;
      else high = middle;
    }
    previous[at] = low === 0 ? -1 : ends[low - 1]!;
    ends[low] = at;
  });
  const longest: Pair[] = [];
  for (let at = ends.length === 0 ? -1 : ends[ends.length - 1]!; at >= 0; at = previous[at]!) longest.push(pairs[at]!);
  return longest.reverse();
}

// compare adds the pairs of equal lines of a part.
function compare({ a, b }: Texts, of: Range, work: { left: number }, pairs: Pair[]): void {
  let { a: i, b: j, endA, endB } = of;
  for (; i < endA && j < endB && a[i] === b[j]; i++, j++) pairs.push([i, j]);
  let same = 0;
  for (; i < endA && j < endB && a[endA - 1] === b[endB - 1]; endA--, endB--) same++;
  for (const [x, y] of matches(a.subarray(i, endA), b.subarray(j, endB), work)) pairs.push([x + i, y + j]);
  for (; same > 0; same--) pairs.push([endA++, endB++]);
}

// matches returns the pairs of equal lines of a shortest edit, by Myers' algorithm, or none if that is too much work.
function matches(a: Int32Array, b: Int32Array, work: { left: number }): Pair[] {
  const most = a.length + b.length;
  if (a.length === 0 || b.length === 0) return [];
  // trace has the furthest places of each number of edits d, for the diagonals from -d to d.
  const trace: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    const [last, furthest] = [trace[d - 1], new Int32Array(2 * d + 1)];
    trace.push(furthest);
    work.left -= furthest.length;
    for (let k = -d; k <= d; k += 2) {
      let x = begin(last, d, k).x;
      const start = x;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      work.left -= x - start;
      furthest[k + d] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length);
    }
    if (work.left < 0) return [];
  }
  return [];
}

// begin returns where diagonal k begins with d edits, and the diagonal that leads there. last is what was reached with one edit less.
function begin(last: Int32Array | undefined, d: number, k: number): { x: number; from: number } {
  if (!last) return { x: 0, from: k };
  const [left, right] = [last[k + d - 2] ?? -1, last[k + d] ?? -1];
  const down = k === -d || (k !== d && left < right);
  return down ? { x: right, from: k + 1 } : { x: left + 1, from: k - 1 };
}

function walkBack(trace: Int32Array[], atA: number, atB: number): Pair[] {
  const pairs: Pair[] = [];
  let [x, y] = [atA, atB];
  for (let d = trace.length - 1; d >= 0; d--) {
    const k = x - y;
    const { x: start, from } = begin(trace[d - 1], d, k);
    while (x > start) pairs.push([--x, --y]);
    if (d > 0) {
      x = trace[d - 1]![from + d - 1]!;
      y = x - from;
    }
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
