// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog of an action: what it does, its command line, a preview, and its output.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Options, type Request, ask, describe, request, useActions } from "./actions";
import { Allow } from "./allow";
import { batch, BatchDialog, conflictExit } from "./batch";
import { Decide } from "./decide";
import { findingsOf } from "./findings";
import { Form, isComplete } from "./form";
import { Modal } from "./modal";
import { Output, type Result, run, useRun } from "./output";
import { Command, Explained, Notice } from "./parts";
import { SaveDialog } from "./savedialog";
import { allowChanges } from "./store";
import { Warnings } from "./warnings";

// ActionDialog shows the requested action, if there is one.
export function ActionDialog(): JSX.Element | null {
  const asked = request.value;
  if (!asked && batch.value) return <BatchDialog of={batch.value} />;
  if (!asked) return <SaveDialog />;
  if (asked.action === "decide") return <Decide asked={asked} />;
  return <Asked key={`${asked.action} ${asked.target.name}`} asked={asked} />;
}

function Asked({ asked }: { asked: Request }): JSX.Element {
  const { target, action } = asked;
  const description = { ...describe(target, action), ...asked.words };
  const reads = description.reads === true;
  const [options, setOptions] = useState<Options>(asked.options);
  const [result, setResult] = useState<Result | null>(null);
  const stop = useRef(new AbortController());
  const actions = useActions(target, "");
  const known = actions.get(action);
  const running = result !== null && result.exit === undefined;
  const refused = known !== undefined && !known.allowed;
  const complete = isComplete(asked, options);
  const previewed = !result && !refused && complete && !actions.loading;
  const preview = useRun(previewed ? JSON.stringify([target, action, options]) : "", previewed ? { target, action, options, preview: !reads } : null);
  const close = () => {
    stop.current.abort();
    request.value = null;
    if (result) asked.done?.();
  };
  const start = () => {
    setResult({ ...preview, command: preview.run, output: [], dropped: 0, exit: undefined, error: "" });
    void run({ target, action, options, preview: false }, setResult, stop.current.signal);
  };
  const decides = target.resource === "environments" && result?.exit === conflictExit;
  return (
    <Modal title={description.title || known?.title || action} close={close}>
      <div class="body">
        <p class="subject">
          <code>{targetName(asked)}</code>
        </p>
        <p>{description.does}</p>
        {refused && (
          <Notice kind="failed">
            <Explained text={known.reason} />
          </Notice>
        )}
        {!result && !refused && <Form asked={asked} options={options} change={setOptions} />}
        {previewed && (action === "sync" || action === "rollback") && <Warnings of={findingsOf(preview)} />}
        {previewed && <Preview result={preview} reads={reads} />}
        {result && <Running result={result} reads={reads} history={asked.history} close={close} />}
        {!result && !refused && !reads && <Allow />}
      </div>
      <footer>
        {running && <p class="hint">Closing stops watching. What the server has begun continues.</p>}
        <button type="button" onClick={close}>
          {result || reads ? "Close" : "Cancel"}
        </button>
        {!result && !reads && (
          <button type="button" class="primary" disabled={refused || !complete || !preview.ended || preview.exit === forbiddenExit || !allowChanges.value} onClick={start}>
            Run
          </button>
        )}
        {result?.exit !== undefined && result.exit !== 0 && (
          <button type="button" onClick={() => setResult(null)}>
            Back
          </button>
        )}
        {decides && (
          <button type="button" class="primary" onClick={() => ask(target, "decide", {}, asked.done)}>
            Decide now
          </button>
        )}
      </footer>
    </Modal>
  );
}

function targetName({ target, options }: Request): string {
  if (target.resource === "objects") return `${String(options.object ?? target.name)} in ${target.namespace}`;
  const kind: Record<string, string> = {
    environments: "environment",
    appcatalogs: "appcatalog",
    syncstatuses: "syncstatus",
    gitdestinations: "gitdestination",
    syncpipelines: "syncpipeline",
    changes: "change",
  };
  return `${kind[target.resource] ?? target.resource}/${target.name}${target.namespace === "" ? "" : ` in ${target.namespace}`}`;
}

// Preview shows the command line and what its dry run prints, or the output of a command that only reads.
function Preview({ result, reads }: { result: Result; reads: boolean }): JSX.Element {
  return (
    <>
      {result.command && <Command line={result.run || result.command} />}
      {!reads && result.output.length > 0 && <h3>Preview: nothing is changed yet</h3>}
      <Output result={result} label={reads ? "Output" : "Preview"} />
      {result.exit === undefined && <p class="progress">{reads ? "Reading" : "Checking"}</p>}
      {result.exit !== undefined && result.error !== "" && (
        <Notice kind="warning">
          <Explained text={result.error} />
        </Notice>
      )}
      {reads && result.exit !== undefined && result.error === "" && result.output.length === 0 && <p class="hint">There is no output.</p>}
    </>
  );
}

// Running shows a command that was started, and its result in a sentence. history is the address of what it has written.
function Running({ result, reads, history, close }: { result: Result; reads: boolean; history: string | undefined; close: () => void }): JSX.Element {
  return (
    <>
      {result.command && <Command line={result.command} />}
      <Output result={result} label="Output" />
      <div aria-live="polite" class="result">
        {result.exit === undefined && <p class="progress">Running</p>}
        {result.exit === 0 && !reads && (
          <Notice kind="synced">
            Done. {written(result)} {history && (
              <a href={history} onClick={close}>
                History of the object
              </a>
            )}
          </Notice>
        )}
        {result.exit !== undefined && result.exit !== 0 && (
          <Notice kind={result.exit === conflictExit ? "conflict" : "failed"}>
            <Explained text={sentence(result)} />
          </Notice>
        )}
      </div>
    </>
  );
}

// written returns what undo or restore has written, in words, from the lines KIND/NAME updated.
function written({ output }: Result): string {
  return output
    .flatMap(({ text, note }) => {
      const [, object, verb] = (note ? null : /^(\S+\/\S+) (updated|created|deleted and created|deleted)$/.exec(text)) ?? [];
      return object && verb ? [`${object} was ${verb}.`] : [];
    })
    .join(" ");
}

// forbiddenExit is the exit code of a command that the user may not run.
const forbiddenExit = 5;

const exits: Record<number, string> = {
  3: "The sync failed.",
  4: "There is a conflict, or something newer came first.",
  5: "You are not allowed to do this.",
  124: "The time limit is over. The work continues on the server.",
  130: "Stopped. What the server has begun continues.",
};

function sentence({ exit = 2, error }: Result): string {
  return capital(error || exits[exit] || `The command ended with exit code ${exit}.`);
}

// capital begins a sentence with a capital letter, unless its first word is a name such as environments.configbutler.ai.
const capital = (text: string): string => text.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
