// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The output of a command of the plugin.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isAbort, lines, messageOf } from "./api";
import type { Options, Target } from "./actions";
import { count } from "./time";

export interface Run {
  target: Target;
  action: string;
  options: Options;
  preview: boolean;
}

export interface Result {
  command: string;
  // run is the command that a preview is of, as it will be run.
  run: string;
  output: { text: string; note: boolean }[];
  // dropped is the number of lines that were dropped, the oldest ones.
  dropped: number;
  // exit is the exit code, undefined while the command runs.
  exit: number | undefined;
  error: string;
}

type Line = { command?: string; run?: string; out?: string; note?: string; exit?: number; error?: string };

const nothing: Result = { command: "", run: "", output: [], dropped: 0, exit: undefined, error: "" };

// mostLines and mostCharacters are what is kept of an output. The oldest lines are dropped first.
const mostLines = 5000;
const mostCharacters = 1 << 20;

// reportPause is the time between two reports of a long output, in milliseconds, so that the page is not busy with showing it.
const reportPause = 60;

// bounded returns the newest lines of an output, and the number of those that were dropped.
export function bounded(output: Result["output"]): { output: Result["output"]; dropped: number } {
  let [from, characters] = [output.length, 0];
  while (from > 0 && output.length - from < mostLines && (characters += output[from - 1]!.text.length) <= mostCharacters) from--;
  return { output: from === 0 ? output : output.slice(from), dropped: from };
}

// run runs a command, and reports its output as it comes.
export async function run(of: Run, report: (result: Result) => void, stop: AbortSignal): Promise<Result> {
  let result = nothing;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const send = () => {
    clearTimeout(timer);
    timer = undefined;
    report(result);
  };
  const set = (changed: Partial<Result>) => {
    result = { ...result, ...changed };
    if (result.exit !== undefined) send();
    else timer ??= setTimeout(send, reportPause);
  };
  try {
    const body = { action: of.action, ...of.target, options: of.options, preview: of.preview };
    for await (const group of lines<Line>("/api/run", body, stop)) {
      const output = [...result.output];
      const changed: Partial<Result> = { output };
      for (const line of group) {
        if (line.command !== undefined) [changed.command, changed.run] = [line.command, line.run ?? ""];
        if (line.out !== undefined) output.push({ text: line.out, note: false });
        if (line.note !== undefined) output.push({ text: line.note, note: true });
        if (line.exit !== undefined) [changed.exit, changed.error] = [line.exit, line.error ?? ""];
      }
      const kept = bounded(output);
      set({ ...changed, output: kept.output, dropped: result.dropped + kept.dropped });
    }
    if (result.exit === undefined) set({ exit: 2, error: "The connection ended before the result arrived." });
  } catch (e) {
    if (isAbort(e)) clearTimeout(timer);
    else set({ exit: 2, error: messageOf(e) });
  }
  return result;
}

// useRun runs a command that only reads, whenever key changes. ended is whether the result is that of key, and complete.
export function useRun(key: string, of: Run | null): Result & { ended: boolean } {
  const [held, setHeld] = useState({ key: "", result: nothing });
  useEffect(() => {
    if (!of) return;
    const stop = new AbortController();
    void run(of, (result) => !stop.signal.aborted && setHeld({ key, result }), stop.signal);
    return () => stop.abort();
  }, [key]);
  return { ...held.result, ended: held.key === key && held.result.exit !== undefined };
}

// Output shows lines, with those of a diff in colour. The sign at the beginning says the same.
export function Output({ result, label }: { result: Result; label: string }): JSX.Element | null {
  if (result.output.length === 0) return null;
  return (
    <pre class="output" tabIndex={0} role="region" aria-label={label}>
      {result.dropped > 0 && <span class="note">{`${count(result.dropped, "older line")} left out: the page keeps 1 MiB. The command shows all.\n`}</span>}
      {runsOf(result.output).map((each, i) => (
        <span key={i} class={each.kind}>
          {each.text}
        </span>
      ))}
    </pre>
  );
}

// runsOf joins lines of the same kind that follow each other, so that a long output has few elements.
function runsOf(output: Result["output"]): { kind: string; text: string }[] {
  const runs: { kind: string; lines: string[] }[] = [];
  for (const line of output) {
    const kind = line.note ? "note" : kindOf(line.text);
    const last = runs[runs.length - 1];
    if (last?.kind === kind) last.lines.push(line.text);
    else runs.push({ kind, lines: [line.text] });
  }
  return runs.map(({ kind, lines }) => ({ kind, text: `${lines.join("\n")}\n` }));
}

function kindOf(text: string): string {
  const sign = text.trimStart()[0];
  if (/^\s*[-+]{3}/.test(text)) return "";
  if (sign === "+") return "added";
  if (sign === "-") return "removed";
  return sign === "~" ? "changed" : "";
}
