// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The fields of the SyncPolicy, with their units, defaults and allowed ranges. pkg/apis/configbutler/v1alpha1/syncpolicy_types.go has them.

export interface SettingsField {
  // path is the place in the spec, such as retry.maxAttempts.
  path: string;
  label: string;
  help: string;
  type: "switch" | "number" | "duration" | "lines";
  // standard is the default; empty means no limit.
  standard: string;
  range: string;
  unit?: string;
}

export interface SettingsGroup {
  title: string;
  help: string;
  fields: SettingsField[];
}

const toggle = (path: string, label: string, help: string): SettingsField => ({ path, label, help, type: "switch", standard: "off", range: "" });

export const groups: SettingsGroup[] = [
  {
    title: "Stopped work",
    help: "Work of whole kinds that is stopped. Requests of users are carried out.",
    fields: [
      toggle("suspend.environmentAutoSync", "Stop automatic catalog syncs of environments", "Changes of catalogs are shown instead, and applied on request."),
      toggle("suspend.dependencyAutoSync", "Stop the automatic refresh of dependencies", "Changes of ConfigMaps, Secrets and Services are shown instead, and applied on request."),
      toggle("suspend.catalogNotices", "Stop notices about changes of catalogs", "No Events and notifications. The changes are still recorded."),
      toggle("suspend.pipelines", "Stop every delivery of pipelines", "Pending objects are kept."),
    ],
  },
  {
    title: "Pace",
    help: "How changes are collected, and how many syncs start.",
    fields: [
      { path: "batchWindow", label: "Batch window", help: "How long changes of a source are collected before they are recorded together.", type: "duration", standard: "30s", range: "1s to 1h" },
      { path: "maxSyncsPerMinute", label: "Syncs per minute", help: "Environment syncs that start within a minute. Others wait in order.", type: "number", standard: "60", range: "1 to 10,000", unit: "per minute" },
      { path: "maxDismissals", label: "Dismissals in a row", help: "After so many, the next changes of an environment can only be applied.", type: "number", standard: "", range: "1 to 1,000, empty for no limit" },
    ],
  },
  {
    title: "Retries",
    help: "How failed work is tried again before a user must intervene.",
    fields: [
      { path: "retry.maxAttempts", label: "Attempts", help: "Including the first.", type: "number", standard: "5", range: "1 to 100" },
      { path: "retry.backoff", label: "First pause", help: "From the first failure to the second attempt. It doubles with each attempt.", type: "duration", standard: "10s", range: "1s to 1h" },
      { path: "retry.maxBackoff", label: "Longest pause", help: "The longest time between attempts. At least the first pause.", type: "duration", standard: "10m", range: "up to 24h" },
    ],
  },
  {
    title: "Records",
    help: "How long records of syncs are kept. Records with unfinished work are always kept.",
    fields: [
      { path: "retention.days", label: "Keep records for", help: "After the last activity of a record.", type: "number", standard: "90", range: "1 to 3650", unit: "days" },
      { path: "retention.keepPerSubject", label: "Records always kept", help: "The newest records of each catalog and environment, whatever their age.", type: "number", standard: "10", range: "0 to 10,000", unit: "records" },
      { path: "retention.maxPerSubject", label: "Most records", help: "Of each catalog and environment. The oldest are removed first.", type: "number", standard: "1000", range: "1 to 100,000, at least those always kept", unit: "records" },
    ],
  },
  {
    title: "Changes",
    help: "How long the history of objects is kept here. Older history is in Git.",
    fields: [
      { path: "changes.ttl", label: "Keep changes for", help: "After the change. 720h is 30 days.", type: "duration", standard: "720h", range: "1h to 87600h (ten years)" },
      { path: "changes.maxTotal", label: "Most changes", help: "In the whole cluster. The oldest are deleted first.", type: "number", standard: "200000", range: "1,000 to 10,000,000", unit: "changes" },
      { path: "changes.maxPerObject", label: "Most changes of one object", help: "The oldest are deleted first.", type: "number", standard: "1000", range: "1 to 1,000,000", unit: "changes" },
    ],
  },
  {
    title: "Copies",
    help: "Labels and annotations by which tools identify objects that they own. Environments remove them from copies.",
    fields: [
      { path: "trackingMarks", label: "Tracking marks", help: "One on each line: a key (example.com/owner), a key with its value (example.com/owner=tool), or all keys of a domain (example.com/*).", type: "lines", standard: "", range: "at most 100" },
    ],
  },
];

export type Spec = { [key: string]: unknown };

// read returns the value at a path.
export function read(spec: Spec, path: string): unknown {
  return path.split(".").reduce<unknown>((at, key) => (at as Spec | undefined)?.[key], spec);
}

// write returns a spec with another value at a path; undefined removes it.
export function write(spec: Spec, path: string, value: unknown): Spec {
  const [key = "", ...rest] = path.split(".");
  const changed = rest.length === 0 ? value : write((spec[key] as Spec | undefined) ?? {}, rest.join("."), value);
  return { ...spec, [key]: changed };
}
