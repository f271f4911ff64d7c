// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog of an action on several environments, which runs one command after the other.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Options, type Target } from "./actions";
import { Allow } from "./allow";
import { type Findings, findingsOf } from "./findings";
import { Modal } from "./modal";
import { type Result, run } from "./output";
import { Command, State } from "./parts";
import type { StateKind } from "./states";
import { allowChanges } from "./store";
import { count } from "./time";
import { Warnings } from "./warnings";

export interface Batch {
  action: "sync" | "dismiss";
  options: Options;
  targets: Target[];
  // done is called after something was run.
  done: () => void;
}

export const batch = signal<Batch | null>(null);

// conflictExit is the exit code of a command that has found conflicts.
export const conflictExit = 4;

interface Item {
  target: Target;
  preview?: Result;
  result?: Result;
}

const nameOf = ({ namespace, name }: Target): string => `${namespace}/${name}`;

const verbs = { sync: "Take changes of", dismiss: "Dismiss changes of" };
const texts = {
  sync: "Applies what the catalog and the cluster offer, to one environment after the other. If one fails, the others are still tried.",
  dismiss: "Hides what is offered to these environments until something newer is offered. Nothing else changes.",
};

export function BatchDialog({ of }: { of: Batch }): JSX.Element {
  const [items, setItems] = useState<Item[]>(of.targets.map((target) => ({ target })));
  const [phase, setPhase] = useState<"ready" | "running" | "ended">("ready");
  const stop = useRef(new AbortController());
  const set = (at: number, changed: Partial<Item>) => setItems((all) => all.map((each, i) => (i === at ? { ...each, ...changed } : each)));
  const each = async (preview: boolean, report: (at: number, result: Result) => void) => {
    const { signal } = stop.current;
    for (const [at, target] of of.targets.entries()) {
      if (signal.aborted) return;
      await run({ target, action: of.action, options: of.options, preview }, (result) => !signal.aborted && report(at, result), signal);
    }
  };
  useEffect(() => {
    void each(true, (at, preview) => set(at, { preview }));
    return () => stop.current.abort();
  }, []);
  const start = async () => {
    setPhase("running");
    await each(false, (at, result) => set(at, { result }));
    if (!stop.current.signal.aborted) setPhase("ended");
  };
  const close = () => {
    stop.current.abort();
    batch.value = null;
    if (phase !== "ready") of.done();
  };
  const decide = (target: Target) => {
    close();
    ask(target, "decide");
  };
  // Until all are checked, it is not known what is overwritten.
  const checked = items.every(({ preview }) => preview?.exit !== undefined);
  const refused = items.every(({ preview }) => preview?.error);
  const title = `${verbs[of.action]} ${count(items.length, "environment")}`;
  const commands = items.flatMap(({ preview }) => preview?.run || []);
  return (
    <Modal title={title} close={close}>
      <div class="body">
        <p>{texts[of.action]}</p>
        {phase === "ready" && <Warnings of={findingsOfAll(items)} />}
        <table class="simple written">
          <caption class="hidden">Environments</caption>
          <thead>
            <tr>
              <th scope="col">Environment</th>
              <th scope="col">{phase === "ready" ? "What happens" : "Result"}</th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={nameOf(item.target)}>
                <td data-title="Environment">{nameOf(item.target)}</td>
                <td data-title="Result">
                  <ItemState item={item} phase={phase} decide={decide} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {commands.length > 0 && (
          <details>
            <summary>{count(commands.length, "command")}</summary>
            <Command line={commands.join("\n")} />
          </details>
        )}
        {phase === "ready" && <Allow />}
      </div>
      <footer>
        {phase === "running" && <p class="hint">Closing leaves out the environments that wait. What the server has begun continues.</p>}
        <button type="button" onClick={close}>
          {phase === "ready" ? "Cancel" : "Close"}
        </button>
        {phase === "ready" && (
          <button type="button" class="primary" disabled={!checked || refused || !allowChanges.value} onClick={() => void start()}>
            {title}
          </button>
        )}
      </footer>
    </Modal>
  );
}

function findingsOfAll(items: Item[]): Findings {
  const all: Findings = { conflicts: [], overwritten: [] };
  for (const { target, preview } of items) {
    if (!preview) continue;
    const found = findingsOf(preview);
    const named = (each: Findings["conflicts"][number]) => ({ ...each, object: `${nameOf(target)} ${each.object}` });
    all.conflicts.push(...found.conflicts.map(named));
    all.overwritten.push(...found.overwritten.map(named));
  }
  return all;
}

// ItemState says what is about to happen to an environment, or what has.
function ItemState({ item, phase, decide }: { item: Item; phase: string; decide: (target: Target) => void }): JSX.Element {
  const { target, preview, result } = item;
  if (phase === "ready") {
    if (preview?.exit === undefined) return <span class="progress">Checking</span>;
    return <State kind={preview.error === "" ? "waiting" : "failed"} text={sentence(item, preview)} />;
  }
  if (!result) return <span class="dim">Waits</span>;
  if (result.exit === undefined) return <State kind="syncing" text={sentence(item, result) || "Running"} />;
  const kind: StateKind = result.exit === 0 ? "synced" : result.exit === conflictExit ? "conflict" : "failed";
  return (
    <span class="buttons">
      <State kind={kind} text={sentence(item, result)} />
      {phase === "ended" && result.exit === conflictExit && (
        <button type="button" class="small" onClick={() => decide(target)}>
          Decide now
        </button>
      )}
    </span>
  );
}

// sentence returns the error of a command, or the last line that it has printed, which says more about conflicts.
function sentence({ target }: Item, { error, exit, output }: Result): string {
  const last = (output[output.length - 1]?.text ?? "").replace(`environment/${target.name}: `, "");
  return (exit === conflictExit && last) || error.split("\n")[0] || last;
}
