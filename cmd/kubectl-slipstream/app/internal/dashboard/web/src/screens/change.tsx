// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// One Change: who, how that is known, why, in which commit, and both contents side by side.
import type { JSX } from "preact";
import { useActions } from "../actions";
import { post } from "../api";
import { ChangeActions } from "../changeactions";
import { DiffView } from "../diffview";
import { Icon } from "../icons";
import { Ago, Empty, Explained, ExternalLink, Notice, Skeleton, useLoaded, useTitle } from "../parts";
import { lifeOf, to } from "../routes";
import { exact } from "../time";
import type { Change, ChangeContents } from "../types";

export function readChange(namespace: string, name: string, stop?: AbortSignal): Promise<ChangeContents> {
  return post<ChangeContents>("/api/change", { namespace, name }, stop);
}

export function ChangeScreen({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  const { value, error } = useLoaded(`${namespace}/${name}`, (stop) => readChange(namespace, name, stop));
  const object = value?.change.spec.object;
  useTitle(object ? `${object.kind}/${object.name}` : "Change");
  return (
    <>
      <nav class="crumbs" aria-label="Path">
        <a href={to(["history"])}>History</a> / <a href={to(["history"], { namespace })}>{namespace}</a>
      </nav>
      {!value && <h1>Change</h1>}
      {error !== "" && (
        <Empty title="This change cannot be shown" command={`kubectl slipstream log -n ${namespace}`}>
          <Explained text={error} />
        </Empty>
      )}
      {!value && error === "" && <Skeleton label="Loading the change" />}
      {value && <Shown of={value} />}
    </>
  );
}

function Shown({ of }: { of: ChangeContents }): JSX.Element {
  const { spec, metadata } = of.change;
  const target = { resource: "changes", namespace: metadata.namespace ?? "", name: metadata.name };
  const actions = useActions(target, "");
  const life = lifeOf(target.namespace, spec.object.resource, spec.object.name);
  return (
    <>
      <div class="title-row">
        <h1>
          <span class="kind">{spec.object.kind}/</span>
          {spec.object.name}
        </h1>
        <div class="buttons">
          <a class="button" href={life}>
            Life of this object
          </a>
          <ChangeActions target={target} actions={actions} operation={spec.operation} history={life} />
        </div>
      </div>
      <ChangeFacts change={of.change} />
      <Contents of={of} />
    </>
  );
}

export function Contents({ of }: { of: ChangeContents }): JSX.Element {
  if (of.error) {
    return (
      <>
        <Notice kind="warning">The contents cannot be read: {of.error}</Notice>
        <Fields change={of.change} />
      </>
    );
  }
  const { object, operation } = of.change.spec;
  const hides = object.resource === "secrets" && object.apiVersion === "v1";
  if (hides && of.before === of.after && of.before !== "") {
    return (
      <>
        <Notice kind="stopped">Only values differ, and the page never gets the values of a Secret. {operation === "Update" && "These keys were changed:"}</Notice>
        <Fields change={of.change} />
      </>
    );
  }
  const titles: [string, string] = [of.before === "" ? "Did not exist" : "Before", of.after === "" ? "Deleted" : "After"];
  return <DiffView before={of.before} after={of.after} titles={titles} />;
}

function Fields({ change }: { change: Change }): JSX.Element | null {
  const { fields = [], moreFields = 0 } = change.spec;
  if (fields.length === 0) return null;
  return (
    <ul class="fields-list">
      {fields.map((field) => (
        <li key={field}>
          <code>{field}</code>
        </li>
      ))}
      {moreFields > 0 && <li class="dim">and {moreFields} more</li>}
    </ul>
  );
}

const operations: Record<string, string> = { Create: "Created", Update: "Updated", Delete: "Deleted", Compared: "Found changed by a comparison" };
const signals: Record<string, string> = { Audit: "known from an audit event", Admission: "known from an admission request" };

export function ChangeFacts({ change }: { change: Change }): JSX.Element {
  const { spec } = change;
  const manager = spec.managedBy;
  return (
    <dl class="facts">
      <div>
        <dt>{operations[spec.operation] ?? spec.operation}</dt>
        <dd>
          {exact(spec.time)} (<Ago time={spec.time} /> ago)
        </dd>
      </div>
      <div>
        <dt>By</dt>
        <dd>
          {spec.author ? (
            <>
              <strong>{spec.author.username}</strong> <span class="dim">{signals[spec.author.signal] ?? spec.author.signal}</span>
            </>
          ) : spec.fieldManager ? (
            <>
              {spec.fieldManager} <span class="dim">the client; no user is known</span>
            </>
          ) : (
            "unknown"
          )}
        </dd>
      </div>
      {spec.reason && (
        <div>
          <dt>Reason</dt>
          <dd>{spec.reason}</dd>
        </div>
      )}
      {manager && (
        <div>
          <dt>Managed by</dt>
          <dd>
            {manager.kind ?? manager.tool} {manager.namespace ? `${manager.namespace}/` : ""}
            {manager.name}
            {spec.bypass && (
              <span class="tag warning">
                <Icon of="warning" /> bypassed
              </span>
            )}
          </dd>
        </div>
      )}
      {(spec.commits ?? []).map((commit) => (
        <div key={`${commit.destinationRef.namespace}/${commit.destinationRef.name}`}>
          <dt>Commit</dt>
          <dd>
            <ExternalLink url={commit.url}>
              <code>{commit.sha.slice(0, 7)}</code>
            </ExternalLink>{" "}
            <code class="dim">{commit.path}</code>
          </dd>
        </div>
      ))}
      {spec.lines && (
        <div>
          <dt>Lines</dt>
          <dd>
            <span class="sign added">+{spec.lines.added}</span> <span class="sign removed">-{spec.lines.removed}</span>
          </dd>
        </div>
      )}
    </dl>
  );
}
