// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The output of a command of the plugin.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isAbort, lines, messageOf } from "./api";
import type { Options, Target } from "./actions";

export interface Run {
  target: Target;
  action: string;
  options: Options;
  preview: boolean;
}

export interface Result {
  command: string;
  output: { text: string; note: boolean }[];
  // exit is the exit code, undefined while the command runs.
  exit: number | undefined;
  error: string;
}

type Line = { command?: string; out?: string; note?: string; exit?: number; error?: string };

const nothing: Result = { command: "", output: [], exit: undefined, error: "" };

// mostLines is the number of lines that are kept of an output.
const mostLines = 5000;

// run runs a command, and reports its output as it comes.
export async function run(of: Run, report: (result: Result) => void, stop: AbortSignal): Promise<Result> {
  let result = nothing;
  const set = (changed: Partial<Result>) => report((result = { ...result, ...changed }));
  try {
    const body = { action: of.action, ...of.target, options: of.options, preview: of.preview };
    for await (const group of lines<Line>("/api/run", body, stop)) {
      const output = [...result.output];
      const changed: Partial<Result> = { output };
      for (const line of group) {
        if (line.command !== undefined) changed.command = line.command;
        if (line.out !== undefined) output.push({ text: line.out, note: false });
        if (line.note !== undefined) output.push({ text: line.note, note: true });
        if (line.exit !== undefined) [changed.exit, changed.error] = [line.exit, line.error ?? ""];
      }
      if (output.length > mostLines) output.splice(0, output.length - mostLines);
      set(changed);
    }
    if (result.exit === undefined) set({ exit: 2, error: "The connection ended before the result arrived." });
  } catch (e) {
    if (!isAbort(e)) set({ exit: 2, error: messageOf(e) });
  }
  return result;
}

// useRun runs a command that only reads, whenever key changes.
export function useRun(key: string, of: Run | null): Result {
  const [result, setResult] = useState<Result>(nothing);
  useEffect(() => {
    if (!of) return;
    const stop = new AbortController();
    let shown = false;
    const report = (next: Result) => {
      if (stop.signal.aborted) return;
      // The old output stays until the new one is complete, so that the page does not jump.
      if (next.exit !== undefined || !shown) setResult(next);
      shown ||= next.exit !== undefined;
    };
    void run(of, report, stop.signal);
    return () => stop.abort();
  }, [key]);
  return result;
}

// Output shows lines, with those of a diff in colour. The sign at the beginning says the same.
export function Output({ result, label }: { result: Result; label: string }): JSX.Element | null {
  if (result.output.length === 0) return null;
  return (
    <pre class="output" tabIndex={0} role="region" aria-label={label}>
      {result.output.map((line, i) => (
        <span key={i} class={line.note ? "note" : kindOf(line.text)}>
          {`${line.text}\n`}
        </span>
      ))}
    </pre>
  );
}

function kindOf(text: string): string {
  const sign = text.trimStart()[0];
  if (/^\s*[-+]{3}/.test(text)) return "";
  if (sign === "+") return "added";
  if (sign === "-") return "removed";
  return sign === "~" ? "changed" : "";
}

// command returns a command line without what makes it a preview.
export function realCommand(command: string): string {
  return command.replace(/ --dry-run(=\w+)?(?= |$)/, "");
}
