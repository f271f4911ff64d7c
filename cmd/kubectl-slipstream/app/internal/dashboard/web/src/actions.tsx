// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// What a user can do with an object: buttons, disabled with the reason where something is not allowed.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { post } from "./api";
import { useLoaded } from "./parts";
import type { Action } from "./types";

export interface Target {
  resource: string;
  namespace: string;
  name: string;
}

export type Options = Record<string, unknown>;

// Request is an action that the user wants to do. The dialog asks for what is missing, shows a preview, and runs it.
export interface Request {
  target: Target;
  action: string;
  options: Options;
  // done is called after the action was run.
  done?: (() => void) | undefined;
  // history is the address of the history of the object that the action writes.
  history?: string | undefined;
  // words replace those of the action.
  words?: Words | undefined;
}

interface Words {
  title: string;
  does: string;
}

export const request = signal<Request | null>(null);

// ask opens the dialog of an action. The action decide is the decision about the conflicts of an environment.
export function ask(target: Target, action: string, options: Options = {}, done?: () => void): void {
  request.value = { target, action, options, done };
}

interface Description {
  title: string;
  // does says what the action does, in a sentence.
  does: string;
  // reads means that nothing is written, so that it runs at once.
  reads?: boolean;
}

const descriptions: Record<string, Description> = {
  "environments sync": { title: "Take changes", does: "Applies what the catalog and the cluster offer to the environment." },
  "environments dismiss": { title: "Dismiss changes", does: "Hides what is offered until something newer is offered. Nothing else changes." },
  "environments undismiss": { title: "Offer again", does: "Offers the dismissed changes again." },
  "environments resolve": { title: "Resolve conflicts", does: "Decides which side of each field stays. The sync then continues." },
  "environments rollback": { title: "Roll back", does: "Returns to an earlier revision and pins it. Automatic syncs wait until it is unpinned." },
  "environments unpin": { title: "Unpin", does: "Removes the pin, so that newer revisions are offered and applied again." },
  "environments rediscover": { title: "Find dependencies again", does: "Reads again which ConfigMaps, Secrets and Services the workloads refer to." },
  "environments diff": { title: "Diff", does: "Shows what a sync would change, field by field.", reads: true },
  "environments missing": { title: "Missing objects", does: "Prints RBAC objects and volume claims that the workloads use and that are not copied.", reads: true },
  "environments explain-drift": { title: "Explain a difference", does: "Traces why an object differs from its source.", reads: true },
  "appcatalogs sync": { title: "Read the source now", does: "Reads the source again, and offers what changed." },
  "appcatalogs rollback": { title: "Roll back", does: "Offers an earlier revision again and pins it. Changes of the source wait until it is unpinned." },
  "appcatalogs unpin": { title: "Unpin", does: "Removes the pin. Changes of the source are offered again." },
  "appcatalogs pause": { title: "Pause", does: "Stops adopting changes of the source for a time. One record lists them afterwards." },
  "appcatalogs resume": { title: "Resume", does: "Ends the pause. Changes of the source are offered again." },
  "syncstatuses dismiss": { title: "Dismiss", does: "Dismisses the record. It is not tried again." },
  "syncstatuses retry": { title: "Retry", does: "Tries the failed work again." },
  "gitdestinations sync": { title: "Compare with Git", does: "Compares the cluster with the branch, and writes what differs." },
  "gitdestinations suspend": { title: "Suspend", does: "Stops writing to Git. Changes are stored until it is resumed." },
  "gitdestinations unsuspend": { title: "Resume", does: "Starts writing to Git again, stored changes first." },
  "syncpipelines sync-pipeline": { title: "Send everything", does: "Sends everything that the sinks do not have yet." },
  "syncpipelines suspend": { title: "Suspend", does: "Stops sending. Changes are stored until it is resumed." },
  "syncpipelines unsuspend": { title: "Resume", does: "Starts sending again, stored changes first." },
  "changes show": { title: "Show the change", does: "Prints the change as a diff.", reads: true },
  "changes undo": { title: "Undo this change", does: "Sets back the fields of this change, with your own rights. Later changes of other fields stay." },
  "changes restore": { title: "Restore to here", does: "Sets the object back to what it was after this change, with your own rights." },
  "objects blame": { title: "Blame", does: "Prints the object with the last change of each line.", reads: true },
};

export function describe(target: Target, action: string): Description {
  return descriptions[`${target.resource} ${action}`] ?? { title: "", does: "" };
}

// Actions are what the user can do with an object.
export interface Actions {
  loading: boolean;
  get: (action: string) => Action | undefined;
  // refusal returns why an action is not possible, empty if it is.
  refusal: (action: string) => string;
}

// useActions loads what the user can do with an object. version changes when the object does.
export function useActions(target: Target, version: string): Actions {
  const key = `${target.resource}/${target.namespace}/${target.name}#${version}`;
  const loaded = useLoaded(key, (stop) => post<{ actions: Action[] | null }>("/api/actions", target, stop));
  const known = new Map((loaded.value?.actions ?? []).map((each) => [each.action, each]));
  const loading = loaded.value === undefined && loaded.error === "";
  return { loading, get: (action) => known.get(action), refusal: (action) => (loading ? "Checking your permissions" : (known.get(action)?.reason ?? "")) };
}

// ActionButton opens the dialog of an action. It stays there if the action is not allowed: the dialog then says why.
export function ActionButton(props: {
  target: Target;
  action: string;
  options?: Options | undefined;
  actions?: Actions;
  label?: ComponentChildren;
  primary?: boolean;
  small?: boolean;
  done?: () => void;
  history?: string;
  words?: Words;
}): JSX.Element {
  const known = props.actions?.get(props.action);
  const refusal = props.actions?.refusal(props.action) ?? "";
  const description = { ...describe(props.target, props.action), ...props.words };
  const click = () => (request.value = { target: props.target, action: props.action, options: props.options ?? {}, done: props.done, history: props.history, words: props.words });
  return (
    <button
      type="button"
      class={`${props.primary ? "primary" : ""} ${props.small ? "small" : ""} ${props.actions?.loading ? "pending" : ""}`}
      aria-disabled={refusal !== ""}
      title={refusal || description.does}
      onClick={click}
    >
      {props.label ?? (description.title || known?.title || props.action)}
      {known && !known.allowed && <span class="hidden">, not possible: {refusal}</span>}
    </button>
  );
}
