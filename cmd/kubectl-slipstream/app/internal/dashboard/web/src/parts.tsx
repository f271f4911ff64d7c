// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Small parts that screens share.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isAbort, messageOf } from "./api";
import { Icon } from "./icons";
import type { StateKind } from "./states";
import { connection, hello, now, streamed, type Table, table } from "./store";
import { duration, exact, milliseconds } from "./time";

// State shows the sentence of the server with an icon.
export function State({ kind, text }: { kind: StateKind; text: string }): JSX.Element {
  return (
    <span class={`state ${kind}`} title={text}>
      <Icon of={kind} />
      <span class="text">{text || "No state yet"}</span>
    </span>
  );
}

// Ago shows how long ago a time was.
export function Ago({ time }: { time: string | undefined }): JSX.Element | null {
  if (!time) return null;
  return (
    <time dateTime={time} title={exact(time)}>
      {duration(now.value - new Date(time).getTime())}
    </time>
  );
}

// Aged shows a duration of a table, which has grown since the row arrived.
export function Aged({ text, received }: { text: string; received: number | undefined }): JSX.Element {
  const ms = milliseconds(text);
  return <span>{ms === undefined ? text : duration(ms + now.value - (received ?? now.value))}</span>;
}

// useDraft returns what the user types into a field that takes effect when the user leaves it. The text stays while the page is drawn again,
// as when a row arrives, and is replaced when the value changes.
export function useDraft(value: string): [string, (text: string) => void] {
  const [draft, setDraft] = useState(value);
  useLayoutEffect(() => setDraft(value), [value]);
  return [draft, setDraft];
}

export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }): JSX.Element {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children && <div>{children}</div>}
      {command && <Command line={command} />}
    </div>
  );
}

// Command shows a command line that the user can copy.
export function Command({ line }: { line: string }): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(line).then(
      () => setCopied(true),
      () => undefined,
    );
  };
  useEffect(() => {
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" class="quiet icon-only" onClick={copy} aria-label={copied ? "Copied" : "Copy the command"} title="Copy the command">
        <Icon of={copied ? "synced" : "copy"} />
      </button>
    </div>
  );
}

// Explained shows an error of the plugin. A line that is indented is a command, which the user can copy.
export function Explained({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text.split("\n").map((line, i) => (/^\s/.test(line) ? <Command key={i} line={line.trim()} /> : <p key={i}>{line}</p>))}
    </>
  );
}

// scope returns what a list is limited to, for messages.
export function scope(): string {
  const namespace = hello.value?.namespace;
  return namespace ? ` in the namespace ${namespace}` : "";
}

// Notice is a message beside the content that it is about.
export function Notice({ kind, children }: { kind: StateKind; children: ComponentChildren }): JSX.Element {
  return (
    <div class={`notice ${kind}`} role={kind === "failed" ? "alert" : "status"}>
      <Icon of={kind} />
      <div>{children}</div>
    </div>
  );
}

// Skeleton stands for content that is loading. rows is the number of its rows, as far as it is known.
export function Skeleton({ rows = 6, label }: { rows?: number; label: string }): JSX.Element {
  return (
    <div class="skeleton" role="status">
      <span class="hint">{label}</span>
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} class="bar" />
      ))}
    </div>
  );
}

// Tables shows content once the tables that it needs have arrived, or why they do not.
export function Tables({ of, what, children }: { of: Table[]; what: string; children: () => ComponentChildren }): JSX.Element {
  const refused = of.find((each) => each.phase === "refused");
  if (refused) {
    return (
      <Empty title={`You may not list ${what}`}>
        <Explained text={refused.error} />
      </Empty>
    );
  }
  if (of.some((each) => each.phase === "loading")) {
    const arrived = streamed.filter((resource) => table(resource).value.phase !== "loading").length;
    return <Skeleton label={`Loading ${what}: ${arrived} of ${streamed.length} lists have arrived`} />;
  }
  const lost = of.find((each) => each.lostSince > 0);
  const old = lost !== undefined || connection.value.state === "lost";
  return (
    <>
      {lost && (
        <Notice kind="warning">
          These {what} are {duration(now.value - lost.lostSince)} old: {lost.error}
        </Notice>
      )}
      <div class={old ? "old" : ""}>{children()}</div>
    </>
  );
}

// Section is a part of a screen with a heading.
export function Section(props: { title: string; count?: number | string; actions?: ComponentChildren; children: ComponentChildren; id?: string }): JSX.Element {
  const id = `section-${(props.id ?? props.title).toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>
          {props.title}
          {props.count !== undefined && <span class="count">{props.count}</span>}
        </h2>
        {props.actions && <div class="actions">{props.actions}</div>}
      </div>
      {props.children}
    </section>
  );
}

// ShowAll switches between the first rows of a list and all of them.
export function ShowAll(props: { size: number; most: number; all: boolean; change: (all: boolean) => void }): JSX.Element | null {
  if (props.size <= props.most) return null;
  return (
    <button type="button" class="quiet small show-all" aria-expanded={props.all} onClick={() => props.change(!props.all)}>
      {props.all ? "Show fewer" : `Show ${props.size - props.most} more`}
    </button>
  );
}

// Switch is a switch. refused is why the user may not change it.
export function Switch(props: { label: string; on: boolean; change: (on: boolean) => void; busy?: boolean; hint?: string; refused?: string }): JSX.Element {
  const { refused = "" } = props;
  const click = () => refused === "" && props.change(!props.on);
  return (
    <button type="button" class="switch" role="switch" aria-checked={props.on} aria-busy={props.busy} aria-disabled={refused !== ""} title={refused || props.hint} onClick={click}>
      <span class="track" aria-hidden="true" />
      <span>{props.label}</span>
    </button>
  );
}

// ExternalLink is a link to another site. Other schemes than http and https become text.
export function ExternalLink({ url, children }: { url: string | undefined; children: ComponentChildren }): JSX.Element {
  if (!url || !/^https?:\/\//i.test(url)) return <>{children}</>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

export interface Loaded<T> {
  value: T | undefined;
  error: string;
  reload: () => void;
}

// useLoaded loads a value again whenever key changes. The old value stays until the new one arrives.
export function useLoaded<T>(key: string, load: (stop: AbortSignal) => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<{ subject: string; value: T | undefined; error: string }>({ subject: "", value: undefined, error: "" });
  const [again, setAgain] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const subject = key.split("#")[0]!;
  useEffect(() => {
    const stop = new AbortController();
    latest.current(stop.signal).then(
      (value) => !stop.signal.aborted && setLoaded({ subject, value, error: "" }),
      (e) => !isAbort(e) && !stop.signal.aborted && setLoaded((old) => ({ subject, value: old.subject === subject ? old.value : undefined, error: messageOf(e) })),
    );
    return () => stop.abort();
  }, [key, again]);
  const current = loaded.subject === subject ? loaded : { value: undefined, error: "" };
  return { value: current.value, error: current.error, reload: () => setAgain(again + 1) };
}

// useMedia reports whether a media query matches.
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const change = () => setMatches(media.matches);
    change();
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, [query]);
  return matches;
}

// useTitle sets the title of the tab.
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Slipstream`;
  }, [title]);
}
