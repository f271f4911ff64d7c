// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog of a change that the page saves itself: what is written, from which value to which.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Target } from "./actions";
import { Allow } from "./allow";
import { messageOf } from "./api";
import { Modal } from "./modal";
import { Command, Explained, Notice } from "./parts";
import { allowChanges, hello } from "./store";

export interface Saving {
  title: string;
  does: string;
  target: Target;
  // patch is what is written to the spec.
  patch: object;
  // fields are the fields of the spec, each with its value as text.
  fields: { field: string; before: string; after: string }[];
  // refused is why the user may not save.
  refused: string;
  // creates is set if the object does not exist yet, so that there is no command for it.
  creates?: boolean;
  save: () => Promise<void>;
}

const saving = signal<Saving | null>(null);

// askToSave shows what is about to be written, and saves it if the user wants that.
export function askToSave(what: Saving): void {
  saving.value = what;
}

export function SaveDialog(): JSX.Element | null {
  return saving.value && <Asked of={saving.value} />;
}

// patchCommand returns the command that writes the same.
function patchCommand({ target, patch }: Saving): string {
  const kind = { environments: "environment", syncpolicies: "syncpolicy" }[target.resource] ?? target.resource;
  const spec = JSON.stringify({ spec: patch }).replaceAll("'", "'\\''");
  return ["kubectl patch", kind, target.name, "--type=merge", `-p '${spec}'`, target.namespace && `-n ${target.namespace}`, hello.value?.flags].filter(Boolean).join(" ");
}

function Asked({ of }: { of: Saving }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const close = () => (saving.value = null);
  const save = () => {
    setBusy(true);
    of.save()
      .then(close, (e) => setProblem(messageOf(e)))
      .finally(() => setBusy(false));
  };
  return (
    <Modal title={of.title} close={close}>
      <div class="body">
        <p>{of.does}</p>
        <table class="simple written">
          <caption class="hidden">What is written</caption>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Now</th>
              <th scope="col">Then</th>
            </tr>
          </thead>
          <tbody>
            {of.fields.map((each) => (
              <tr key={each.field}>
                <td data-title="Field">
                  <code>{each.field}</code>
                </td>
                <td data-title="Now">
                  <del>{each.before}</del>
                </td>
                <td data-title="Then">
                  <ins>{each.after}</ins>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {!of.creates && <Command line={patchCommand(of)} />}
        {of.refused !== "" && (
          <Notice kind="failed">
            <Explained text={of.refused} />
          </Notice>
        )}
        {problem !== "" && <Notice kind="failed">{problem}</Notice>}
        {of.refused === "" && <Allow />}
      </div>
      <footer>
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="primary" disabled={of.refused !== "" || busy || !allowChanges.value} onClick={save}>
          {busy ? "Saving" : "Save"}
        </button>
      </footer>
    </Modal>
  );
}
