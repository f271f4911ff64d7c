// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The settings that all catalogs and environments share: the SyncPolicy default.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useActions } from "../actions";
import { ApiError, messageOf, post } from "../api";
import { keysOn, switchKeys } from "../keys";
import { Empty, Explained, Notice, Section, Skeleton, Switch, useDraft, useLoaded, useTitle } from "../parts";
import { patchSpec } from "../patch";
import { askToSave } from "../savedialog";
import { keyOf, table } from "../store";
import { setTheme, type Theme, theme } from "../theme";
import { count, number } from "../time";
import type { Condition, Meta } from "../types";
import { groups, read, type SettingsField, type Spec, write } from "./settingsfields";

interface Policy {
  metadata: Meta;
  spec: Spec;
  status?: { records?: number; recordsExpired?: number; recordsArchived?: number; syncsWaiting?: number; conditions?: Condition[] };
}

const target = { resource: "syncpolicies", namespace: "", name: "default" };

// load reads the policy; undefined if there is none yet, so that all settings have their defaults.
async function load(stop: AbortSignal): Promise<Policy | null> {
  try {
    return (await post<{ object: Policy }>("/api/object", target, stop)).object;
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return null;
    throw e;
  }
}

export function SettingsScreen(): JSX.Element {
  useTitle("Settings");
  const { value, error, reload } = useLoaded("policy", load);
  const [saved, setSaved] = useState(false);
  return (
    <>
      <h1>Settings</h1>
      <ThisPage />
      {error !== "" && (
        <Empty title="The settings of the server cannot be shown">
          <Explained text={error} />
        </Empty>
      )}
      {value === undefined && error === "" && <Skeleton label="Loading settings" />}
      {value !== undefined && error === "" && <Server key={value?.metadata.resourceVersion ?? ""} policy={value} {...{ reload, saved, setSaved }} />}
    </>
  );
}

// ThisPage are settings of this browser.
function ThisPage(): JSX.Element {
  return (
    <Section title="This page">
      <div class="settings">
        <div class="setting">
          <label for="theme">Theme</label>
          <select id="theme" value={theme.value} onChange={(e) => setTheme(e.currentTarget.value as Theme)}>
            <option value="system">as the system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </div>
        <div class="setting">
          <Switch label="Use keys" on={keysOn.value} change={switchKeys} />
          <p class="help">Press ? for the list.</p>
        </div>
      </div>
    </Section>
  );
}

interface ServerProps {
  policy: Policy | null;
  reload: () => void;
  // saved means that the settings were saved here, and not changed since.
  saved: boolean;
  setSaved: (saved: boolean) => void;
}

function Server({ policy, reload, saved, setSaved }: ServerProps): JSX.Element {
  const before = policy?.spec ?? {};
  const [spec, setSpec] = useState<Spec>(before);
  const [problem, setProblem] = useState("");
  const refused = useActions(target, "").refusal("save");
  const written = changedFields(before, spec);
  const changed = JSON.stringify(spec) !== JSON.stringify(before);
  const save = async () => {
    setProblem("");
    try {
      await patchSpec(target, policy, patchOf(before, spec));
      setSaved(true);
      reload();
    } catch (failure) {
      // The problem is shown at its field.
      setProblem(failure instanceof ApiError && failure.status === 409 ? `${messageOf(failure)} Reload shows the current settings.` : messageOf(failure));
    }
  };
  const submit = (e: Event) => {
    e.preventDefault();
    askToSave({ title: "Save settings", does: "These settings are for all catalogs and environments of the cluster.", target, patch: patchOf(before, spec), fields: written, refused, creates: policy === null, save });
  };
  const set = (path: string, value: unknown) => {
    setSpec(write(spec, path, value));
    setSaved(false);
  };
  useEffect(() => {
    document.querySelector<HTMLElement>("main [aria-invalid=true]")?.focus();
  }, [problem]);
  const unplaced = problem !== "" && !allFields().some((field) => isAbout(problem, field.path));
  return (
    <form onSubmit={submit} aria-label="Settings of the server">
      {policy === null && <Notice kind="stopped">There is no SyncPolicy yet, so all settings have their defaults. Saving creates it.</Notice>}
      {policy?.status && <Status of={policy.status} />}
      {groups.map((group) => (
        <Section key={group.title} title={group.title}>
          <p class="hint">{group.help}</p>
          <div class="settings">
            {group.fields.map((field) => (
              <Setting key={field.path} field={field} value={read(spec, field.path)} error={isAbout(problem, field.path) ? problem : ""} set={(value) => set(field.path, value)} />
            ))}
            {group.title === "Records" && <Archive spec={spec} set={set} error={isAbout(problem, "retention.archive") ? problem : ""} />}
          </div>
        </Section>
      ))}
      <div class="save-bar">
        {unplaced && <Notice kind="failed">{problem}</Notice>}
        {changed && refused !== "" && (
          <Notice kind="stopped">
            <Explained text={refused} />
          </Notice>
        )}
        <div class="buttons" aria-live="polite">
          <button type="submit" class="primary" disabled={refused !== "" || !changed} title={refused}>
            Save
          </button>
          <button type="button" disabled={!changed} onClick={() => setSpec(before)}>
            Reset
          </button>
          <button type="button" class="quiet" onClick={reload}>
            Reload
          </button>
          {saved && !changed && <span>Saved.</span>}
          {changed && <span class="dim">{count(written.length, "setting")} changed</span>}
        </div>
      </div>
    </form>
  );
}

const allFields = (): { path: string; standard: string }[] => [...groups.flatMap((group) => group.fields), { path: "retention.archive", standard: "" }];

// changedFields are the settings that differ, each with its value as text.
function changedFields(before: Spec, after: Spec): { field: string; before: string; after: string }[] {
  return allFields()
    .map(({ path, standard }) => ({ path, standard, old: read(before, path), value: read(after, path) }))
    .filter(({ old, value }) => JSON.stringify(old) !== JSON.stringify(value))
    .map(({ path, standard, old, value }) => ({ field: `spec.${path}`, before: valueText(old, standard), after: valueText(value, standard) }));
}

// valueText returns the value of a setting; without one, the default applies.
function valueText(value: unknown, standard: string): string {
  if (value === undefined) return standard === "" ? "not set" : `not set (${standard})`;
  return typeof value === "object" ? JSON.stringify(value) : shortDuration(String(value));
}

// isAbout reports whether an error of the server names a field.
function isAbout(problem: string, path: string): boolean {
  return new RegExp(`spec\\.${path.replaceAll(".", "\\.")}(?![A-Za-z])`).test(problem);
}

// patchOf returns the fields that differ, as a merge patch: null removes one.
function patchOf(before: Spec, after: Spec): Spec {
  const patch: Spec = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, value] = [before[key], after[key]];
    if (JSON.stringify(old) === JSON.stringify(value)) continue;
    patch[key] = value === undefined ? null : isObject(value) ? patchOf(isObject(old) ? old : {}, value) : value;
  }
  return patch;
}

const isObject = (value: unknown): value is Spec => typeof value === "object" && value !== null && !Array.isArray(value);

function Status({ of }: { of: NonNullable<Policy["status"]> }): JSX.Element {
  const ready = of.conditions?.find((each) => each.type === "Ready");
  return (
    <>
      {ready && ready.status !== "True" && <Notice kind="failed">{ready.message}</Notice>}
      <p class="hint">
        {count(of.records ?? 0, "record")} kept, {number(of.recordsExpired ?? 0)} expired, {number(of.recordsArchived ?? 0)} archived, {count(of.syncsWaiting ?? 0, "sync", "syncs")} waiting for the limit per minute.
      </p>
    </>
  );
}

interface SettingProps {
  field: SettingsField;
  value: unknown;
  error: string;
  set: (value: unknown) => void;
}

function Setting({ field, value, error, set }: SettingProps): JSX.Element {
  const id = `setting-${field.path.replaceAll(".", "-")}`;
  if (field.type === "switch") {
    return (
      <div class="setting">
        <Switch label={field.label} on={value === true} change={(on) => set(on ? true : value === undefined ? undefined : false)} />
        <p class="help">{field.help}</p>
        <Problem text={error} id={id} />
      </div>
    );
  }
  const limits = [field.standard && `Default ${field.standard}.`, field.range && `${field.range[0]!.toUpperCase()}${field.range.slice(1)}.`].filter(Boolean).join(" ");
  return (
    <div class="setting">
      <label for={id}>{field.label}</label>
      <div class="control">
        <Input id={id} field={field} value={value} set={set} invalid={error !== ""} />
        {field.unit && <span class="dim">{field.unit}</span>}
      </div>
      <p class="help" id={`${id}-help`}>
        {field.help} <span class="limits">{limits}</span>
      </p>
      <Problem text={error} id={id} />
    </div>
  );
}

function Input({ id, field, value, set, invalid }: { id: string; field: SettingsField; value: unknown; set: (value: unknown) => void; invalid: boolean }): JSX.Element {
  const common = { id, "aria-describedby": `${id}-help ${id}-problem`, "aria-invalid": invalid };
  switch (field.type) {
    case "lines":
      return <Lines {...common} lines={(value as string[] | undefined) ?? []} set={(lines) => set(nonEmpty(lines))} />;
    case "number":
      return <input {...common} type="number" step={1} placeholder={field.standard || "none"} value={value === undefined ? "" : String(value)} onInput={(e) => set(e.currentTarget.value === "" ? undefined : Number(e.currentTarget.value))} />;
  }
  return <input {...common} type="text" class="duration" spellcheck={false} placeholder={field.standard} value={value === undefined ? "" : shortDuration(String(value))} onInput={(e) => set(e.currentTarget.value.trim() || undefined)} />;
}

function Lines({ lines, set, ...common }: { id: string; "aria-describedby": string; "aria-invalid": boolean; lines: string[]; set: (lines: string[]) => void }): JSX.Element {
  const [draft, setDraft] = useDraft(lines.join("\n"));
  const apply = (text: string) => {
    const typed = text.split("\n").map((each) => each.trim()).filter(Boolean);
    setDraft(typed.join("\n"));
    set(typed);
  };
  return <textarea {...common} rows={4} spellcheck={false} value={draft} onInput={(e) => setDraft(e.currentTarget.value)} onChange={(e) => apply(e.currentTarget.value)} />;
}

// shortDuration leaves out units that are zero at the end, as in 720h0m0s.
const shortDuration = (text: string): string => text.replace(/(?<=[hm])(0m)?0s$/, "");

const nonEmpty = (all: string[]): string[] | undefined => (all.length === 0 ? undefined : all);

function Problem({ text, id }: { text: string; id: string }): JSX.Element {
  return (
    <p class="problem" id={`${id}-problem`} role={text === "" ? undefined : "alert"}>
      {text}
    </p>
  );
}

interface ArchiveSpec {
  type: string;
  destinationRef?: { namespace: string; name: string };
}

function Archive({ spec, set, error }: { spec: Spec; set: (path: string, value: unknown) => void; error: string }): JSX.Element {
  const archive = read(spec, "retention.archive") as ArchiveSpec | undefined;
  const destinations = [...table("gitdestinations").value.rows.values()].map(keyOf).sort();
  const current = archive?.destinationRef ? keyOf(archive.destinationRef) : "";
  const chooseType = (type: string) => set("retention.archive", type === "" ? undefined : type === "File" ? { type } : { type, destinationRef: reference(destinations[0] ?? "") });
  return (
    <div class="setting">
      <label for="setting-archive">Archive</label>
      <div class="control">
        <select id="setting-archive" value={archive?.type ?? ""} onChange={(e) => chooseType(e.currentTarget.value)}>
          <option value="">none</option>
          <option value="File">a folder of the server</option>
          <option value="GitDestination">a Git destination</option>
        </select>
        {archive?.type === "GitDestination" && (
          <select aria-label="Git destination of the archive" value={current} onChange={(e) => set("retention.archive", { type: "GitDestination", destinationRef: reference(e.currentTarget.value) })}>
            {[...new Set([...destinations, current])].filter(Boolean).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        )}
      </div>
      <p class="help">
        Where records are written before they are removed. A Git destination must allow cluster rules. <span class="limits">Default none.</span>
      </p>
      <Problem text={error} id="setting-archive" />
    </div>
  );
}

function reference(key: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}
