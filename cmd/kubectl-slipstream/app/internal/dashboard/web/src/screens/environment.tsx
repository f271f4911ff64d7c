// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// One environment.
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ActionButton, type Actions, ask, type Target, useActions } from "../actions";
import { type Findings, findingsOf } from "../findings";
import { addScreenKeys } from "../keys";
import { useObject } from "../listing";
import { type Result, useRun } from "../output";
import { Ago, Empty, Explained, Notice, Skeleton, State, Switch, useTitle } from "../parts";
import { addressOf, route, setQuery, to } from "../routes";
import { patchSpec } from "../patch";
import { askToSave } from "../savedialog";
import { environmentKind } from "../states";
import { keyOf, table } from "../store";
import { exact } from "../time";
import type { Environment } from "../types";
import { Conflicts } from "./conflicts";
import { pressOnEnvironment } from "./inbox";
import { Prompts } from "./prompts";
import { DependenciesTab, DiffTab, HistoryTab, RevisionsTab } from "./environmenttabs";
import { Records } from "../records";

export interface EnvironmentProps {
  environment: Environment;
  target: Target;
  actions: Actions;
  version: string;
  reload: () => void;
  // diff is what a sync would change, and findings are the fields in it that others have changed.
  diff: Result;
  findings: Findings;
}

export function EnvironmentScreen({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  useTitle(name);
  const row = table("environments").value.rows.get(keyOf({ namespace, name }));
  const version = row?.version ?? "";
  const target = { resource: "environments", namespace, name };
  const { value, error, reload } = useObject<Environment>("environments", namespace, name, version);
  const actions = useActions(target, version);
  useEffect(() => addScreenKeys((key) => pressOnEnvironment(key, target, addressOf("environments", target))), [namespace, name]);
  return (
    <>
      <nav class="crumbs" aria-label="Path">
        <a href={to(["environments"])}>Environments</a> / <span>{namespace}</span>
      </nav>
      {!value && <h1>{name}</h1>}
      {error !== "" && (
        <Empty title={`The environment ${name} cannot be shown`} command={`kubectl get environment ${name} -n ${namespace}`}>
          <Explained text={error} />
        </Empty>
      )}
      {!value && error === "" && <Skeleton label={`Loading the environment ${name}`} />}
      {value && <Shown environment={value} {...{ target, actions, version, reload }} />}
    </>
  );
}

function Shown(of: Omit<EnvironmentProps, "diff" | "findings">): JSX.Element {
  const { environment, target, version, reload } = of;
  const status = environment.status;
  const state = status?.state ?? "";
  const conflicts = status?.conflicts ?? [];
  const key = `${target.namespace}/${target.name} ${state} ${status?.latestRevision} ${status?.appliedRevision} ${status?.latestDependencySync}`;
  const diff = useRun(key, { target, action: "diff", options: {}, preview: false });
  const props = { ...of, diff, findings: findingsOf(diff) };
  return (
    <>
      <div class="title-row">
        <h1>{target.name}</h1>
        <div class="buttons">
          {conflicts.length > 0 && <DecideButton {...props} />}
          <ActionButton target={target} action="sync" actions={props.actions} label="Take everything" done={reload} />
          <More {...props} />
        </div>
      </div>
      <div class="sentence">
        <State kind={environmentKind(state)} text={state} />
      </div>
      <Facts {...props} />
      {environment.status?.lastError && (
        <Notice kind="failed">
          <strong>{environment.status.lastError.reason}</strong> {environment.status.lastError.message} (<Ago time={environment.status.lastError.at} /> ago)
        </Notice>
      )}
      {conflicts.length > 0 && <Conflicts target={target} refused={props.actions.refusal("resolve")} conflicts={conflicts} version={version} done={reload} />}
      <Prompts {...props} />
      <Tabs {...props} />
    </>
  );
}

// DecideButton opens the dialog of the conflicts.
export function DecideButton({ target, actions, reload }: Pick<EnvironmentProps, "target" | "actions" | "reload">): JSX.Element {
  const refused = actions.loading ? "" : actions.refusal("resolve");
  return (
    <button type="button" class="primary" disabled={refused !== ""} title={refused} onClick={() => ask(target, "decide", {}, reload)}>
      Decide now
    </button>
  );
}

// More are the actions that are needed less often.
type Shared = Pick<EnvironmentProps, "environment" | "target" | "actions" | "reload">;

function More({ target, actions, environment, reload }: Shared): JSX.Element {
  const missing = environment.status?.notCopied ?? [];
  return (
    <>
      {environment.spec.pinnedRevision !== undefined && <ActionButton target={target} action="unpin" actions={actions} done={reload} />}
      {missing.length > 0 && <ActionButton target={target} action="missing" actions={actions} label={`Missing objects (${missing.length})`} />}
      <ActionButton target={target} action="explain-drift" options={explained(environment)} actions={actions} />
      <ActionButton target={target} action="rediscover" actions={actions} done={reload} />
    </>
  );
}

// explained returns an object whose difference is worth an explanation.
function explained({ status }: Environment): { object?: string } {
  const changed = status?.changedWorkloads?.[0];
  return changed ? { object: `${changed.kind.toLowerCase()}/${changed.name}` } : {};
}

function Facts({ environment, target, actions, reload }: Shared): JSX.Element {
  const { spec, status } = environment;
  const catalog = { namespace: spec.catalogRef.namespace ?? target.namespace, name: spec.catalogRef.name };
  const [applied, offered] = [status?.appliedRevision ?? 0, status?.latestRevision ?? 0];
  return (
    <dl class="facts">
      <Fact title="Catalog">
        <a href={addressOf("catalogs", catalog)}>{catalog.name}</a>
      </Fact>
      <Fact title="Revision">
        <code>
          r{applied}
          {offered > applied && ` → r${offered}`}
        </code>
        {spec.pinnedRevision !== undefined && <span class="tag">pinned at r{spec.pinnedRevision}</span>}
      </Fact>
      <Fact title="Namespace">
        <a href={to(["history"], { namespace: spec.targetNamespace })}>{spec.targetNamespace}</a>
      </Fact>
      <Fact title="Type">{spec.type ?? "Shared"}</Fact>
      {status?.workloadsReady && (
        <Fact title="Ready">
          {status.workloadsReady.ready} of {status.workloadsReady.total}
        </Fact>
      )}
      <Fact title="Last sync">{status?.lastCatalogSyncedAt ? <Ago time={status.lastCatalogSyncedAt} /> : "never"}</Fact>
      {status?.expiresAt && <Fact title="Deleted at">{exact(status.expiresAt)}</Fact>}
      {spec.syncWindows && spec.syncWindows.length > 0 && <Fact title="Windows">{spec.syncWindows.map((each) => `${each.kind} ${each.name} (${each.schedule}, ${each.duration})`).join(", ")}</Fact>}
      <Switches {...{ environment, target, actions, reload }} />
    </dl>
  );
}

function Fact({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Switches({ environment, target, actions, reload }: Shared): JSX.Element {
  const { autoSync = false, shadow = false } = environment.spec;
  const refused = actions.refusal("save");
  const by = environment.status?.automatedBy;
  const change = (field: "autoSync" | "shadow", on: boolean) =>
    askToSave({
      ...switches[field]![on ? "on" : "off"],
      target,
      patch: { [field]: on },
      fields: [{ field: `spec.${field}`, before: String(!on), after: String(on) }],
      refused,
      save: () => patchSpec(target, environment, { [field]: on }).finally(reload),
    });
  return (
    <div class="switches">
      <dt>Automatic</dt>
      <dd>
        <Switch label="Auto-sync" on={autoSync} refused={refused} change={(on) => change("autoSync", on)} hint="Apply changes of the catalog and of the cluster automatically" />
        <Switch label="Shadow" on={shadow} refused={refused} change={(on) => change("shadow", on)} hint="Only plan and record automatic syncs, without writing" />
        {by && <span class="dim">as {by.username}</span>}
      </dd>
    </div>
  );
}

interface Texts {
  title: string;
  does: string;
}

const switches: Record<string, { on: Texts; off: Texts }> = {
  autoSync: {
    on: { title: "Switch on auto-sync", does: "Changes of the catalog and of the cluster are then applied as they come, with your permissions, within the sync windows." },
    off: { title: "Switch off auto-sync", does: "Changes of the catalog and of the cluster then wait until someone takes them." },
  },
  shadow: {
    on: { title: "Switch on shadow", does: "Automatic syncs are then only planned and recorded. Nothing is written." },
    off: { title: "Switch off shadow", does: "Automatic syncs then write again." },
  },
};

const tabs: [string, string][] = [
  ["diff", "Diff"],
  ["dependencies", "Dependencies"],
  ["records", "Records"],
  ["revisions", "Revisions"],
  ["history", "History"],
];

function Tabs(props: EnvironmentProps): JSX.Element {
  const tab = route.value.query.tab ?? "diff";
  return (
    <section class="section" aria-label="Details">
      <div class="tabs" role="tablist" aria-label="Details">
        {tabs.map(([key, title]) => (
          <button key={key} id={`tab-${key}`} type="button" role="tab" aria-selected={tab === key} aria-controls="tab-panel" tabIndex={tab === key ? 0 : -1} onClick={() => setQuery({ tab: key })} onKeyDown={moveTab}>
            {title}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        <Panel tab={tab} {...props} />
      </div>
    </section>
  );
}

function moveTab(e: KeyboardEvent): void {
  const by = e.key === "ArrowRight" ? "nextElementSibling" : e.key === "ArrowLeft" ? "previousElementSibling" : null;
  const other = by && (e.currentTarget as Element)[by];
  if (!(other instanceof HTMLElement)) return;
  other.focus();
  other.click();
}

function Panel({ tab, ...props }: EnvironmentProps & { tab: string }): JSX.Element {
  const { namespace, name } = props.target;
  switch (tab) {
    case "dependencies":
      return <DependenciesTab {...props} />;
    case "records":
      return <Records namespace={namespace} label={`configbutler.ai/environment=${name}`} version={props.version} done={props.reload} />;
    case "revisions":
      return <RevisionsTab {...props} />;
    case "history":
      return <HistoryTab {...props} />;
  }
  return <DiffTab {...props} />;
}
