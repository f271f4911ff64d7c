// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog of an action: what it does, its command line, a preview, and its output.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Options, type Request, describe, request, useActions } from "./actions";
import { messageOf, post } from "./api";
import { Form, isComplete } from "./form";
import { Icon } from "./icons";
import { Output, type Result, realCommand, run, useRun } from "./output";
import { Command, Explained, Notice } from "./parts";
import { allowChanges } from "./store";

// Modal is a native dialog, open as long as it is rendered.
export function Modal(props: { title: string; close: () => void; children: JSX.Element | JSX.Element[]; wide?: boolean }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector("h2")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(e) => {
        e.preventDefault();
        props.close();
      }}
    >
      <header>
        <h2 id="dialog-title" tabIndex={-1}>{props.title}</h2>
        <button type="button" class="quiet icon-only" aria-label="Close" onClick={props.close}>
          <Icon of="close" />
        </button>
      </header>
      {props.children}
    </dialog>
  );
}

// ActionDialog shows the requested action, if there is one.
export function ActionDialog(): JSX.Element | null {
  const asked = request.value;
  if (!asked) return null;
  return <Asked key={`${asked.action} ${asked.target.name}`} asked={asked} />;
}

function Asked({ asked }: { asked: Request }): JSX.Element {
  const { target, action } = asked;
  const description = describe(target, action);
  const [options, setOptions] = useState<Options>(asked.options);
  const [result, setResult] = useState<Result | null>(null);
  const stop = useRef(new AbortController());
  const actions = useActions(target, "");
  const known = actions.get(action);
  const running = result !== null && result.exit === undefined;
  const refused = known !== undefined && !known.allowed;
  const complete = isComplete(asked, options);
  const close = () => {
    stop.current.abort();
    request.value = null;
    if (result) asked.done?.();
  };
  const start = () => {
    setResult({ command: "", output: [], exit: undefined, error: "" });
    void run({ target, action, options, preview: false }, setResult, stop.current.signal);
  };
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
        {!result && !refused && complete && !actions.loading && <Preview asked={asked} options={options} reads={description.reads === true} />}
        {result && <Running result={result} reads={description.reads === true} />}
        {!result && !refused && !description.reads && <Allow />}
      </div>
      <footer>
        {running && <p class="hint">Closing stops watching. What the server has begun continues.</p>}
        <button type="button" onClick={close}>
          {result || description.reads ? "Close" : "Cancel"}
        </button>
        {!result && !description.reads && (
          <button type="button" class="primary" disabled={refused || !complete || !allowChanges.value} onClick={start}>
            Run
          </button>
        )}
        {result?.exit !== undefined && result.exit !== 0 && (
          <button type="button" onClick={() => setResult(null)}>
            Back
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
function Preview({ asked, options, reads }: { asked: Request; options: Options; reads: boolean }): JSX.Element {
  const { target, action } = asked;
  const key = JSON.stringify([target, action, options]);
  const result = useRun(key, { target, action, options, preview: !reads });
  return (
    <>
      {result.command && <Command line={realCommand(result.command)} />}
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

// Running shows a command that was started, and its result in a sentence.
function Running({ result, reads }: { result: Result; reads: boolean }): JSX.Element {
  return (
    <>
      {result.command && <Command line={result.command} />}
      <Output result={result} label="Output" />
      <div aria-live="polite" class="result">
        {result.exit === undefined && <p class="progress">Running</p>}
        {result.exit === 0 && !reads && <Notice kind="synced">Done.</Notice>}
        {result.exit !== undefined && result.exit !== 0 && (
          <Notice kind="failed">
            <Explained text={sentence(result)} />
          </Notice>
        )}
      </div>
    </>
  );
}

const exits: Record<number, string> = {
  3: "The sync failed.",
  4: "There is a conflict, or something newer came first.",
  5: "You are not allowed to do this.",
  124: "The time limit is over. The work continues on the server.",
  130: "Stopped. What the server has begun continues.",
};

function sentence({ exit = 2, error }: Result): string {
  return error || exits[exit] || `The command ended with exit code ${exit}.`;
}

// Allow offers the switch that lets this page change something.
export function Allow(): JSX.Element | null {
  const [error, setError] = useState("");
  if (allowChanges.value) return null;
  const allow = () => void post("/api/allow", { allow: true }).then(() => (allowChanges.value = true), (e) => setError(messageOf(e)));
  return (
    <div class="notice stopped allow">
      <Icon of="lock" />
      <div>
        <p>This page only reads. Changes are made with your own rights.</p>
        <button type="button" onClick={allow}>
          Allow changes
        </button>
        {error && <p role="alert">{error}</p>}
      </div>
    </div>
  );
}
