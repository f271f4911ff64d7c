// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The options of actions, which a dialog asks for.
import type { JSX } from "preact";
import type { Options, Request } from "./actions";

interface FormProps {
  asked: Request;
  options: Options;
  change: (options: Options) => void;
}

// isComplete reports whether the options suffice to run an action.
export function isComplete({ target, action }: Request, options: Options): boolean {
  switch (`${target.resource} ${action}`) {
    case "environments rollback":
    case "appcatalogs rollback":
      return Number.isInteger(options.revision);
    case "appcatalogs pause":
      return /^(\d+(\.\d+)?(h|m|s))+$/.test(String(options.for ?? ""));
    case "environments explain-drift":
      return /^[a-z0-9.]+\/[a-z0-9.-]+$/.test(String(options.object ?? ""));
  }
  return true;
}

export function Form(props: FormProps): JSX.Element | null {
  switch (`${props.asked.target.resource} ${props.asked.action}`) {
    case "environments sync":
      return <SyncForm {...props} />;
    case "appcatalogs pause":
      return <PauseForm {...props} />;
    case "environments explain-drift":
      return <ObjectForm {...props} />;
    case "gitdestinations sync":
      return <Check {...props} option="full" label="Read the branch again before it is compared" />;
  }
  return null;
}

const syncActions: [string, string][] = [
  ["all", "Everything"],
  ["catalog", "Changes of the catalog: workloads, with what they refer to"],
  ["cluster", "Changes of the cluster: only what workloads refer to"],
];

function SyncForm({ options, change, asked }: FormProps): JSX.Element {
  const chosen = String(options.action ?? "all");
  return (
    <fieldset>
      <legend>What to take</legend>
      {syncActions.map(([value, label]) => (
        <label key={value} class="choice">
          <input type="radio" name="action" checked={chosen === value} onChange={() => change({ ...options, action: value })} />
          {label}
        </label>
      ))}
      <Check asked={asked} options={options} change={change} option="force" label="Also outside of sync windows, in spite of a pin, and over objects of others" />
    </fieldset>
  );
}

function Check({ options, change, option, label }: FormProps & { option: string; label: string }): JSX.Element {
  return (
    <label class="choice">
      <input type="checkbox" checked={options[option] === true} onChange={(e) => change({ ...options, [option]: e.currentTarget.checked })} />
      {label}
    </label>
  );
}

function PauseForm({ options, change }: FormProps): JSX.Element {
  return (
    <fieldset>
      <legend>For how long</legend>
      {["1h", "4h", "24h", "168h"].map((value) => (
        <label key={value} class="choice">
          <input type="radio" name="for" checked={options.for === value} onChange={() => change({ ...options, for: value })} />
          {value === "168h" ? "168h (a week)" : value}
        </label>
      ))}
      <label class="field">
        Another duration, such as 90m
        <input type="text" value={String(options.for ?? "")} spellcheck={false} onInput={(e) => change({ ...options, for: e.currentTarget.value.trim() })} />
      </label>
    </fieldset>
  );
}

function ObjectForm({ options, change }: FormProps): JSX.Element {
  return (
    <label class="field">
      Object, such as deployment/web
      <input type="text" spellcheck={false} value={String(options.object ?? "")} onChange={(e) => change({ ...options, object: e.currentTarget.value.trim().toLowerCase() })} />
    </label>
  );
}
