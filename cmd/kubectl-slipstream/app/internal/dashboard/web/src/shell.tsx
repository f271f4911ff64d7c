// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The frame of the page: header, navigation, numbers, and the state of the connection.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { chooseNamespace, chosenNamespace, endSession, ended, post } from "./api";
import { ActionDialog } from "./dialog";
import { Help } from "./help";
import { Icon } from "./icons";
import { waiting } from "./inboxitems";
import { helpOpen } from "./keys";
import { Command, Notice, Switch } from "./parts";
import { route, screens, to } from "./routes";
import { CatalogScreen, CatalogsScreen } from "./screens/catalogs";
import { ChangeScreen } from "./screens/change";
import { EnvironmentScreen } from "./screens/environment";
import { EnvironmentsScreen } from "./screens/environments";
import { GitScreen } from "./screens/git";
import { HistoryScreen } from "./screens/history";
import { InboxScreen } from "./screens/inbox";
import { LifeScreen } from "./screens/life";
import { PipelinesScreen } from "./screens/pipelines";
import { SettingsScreen } from "./screens/settings";
import { environmentKindOf, kinds, nouns, type StateKind } from "./states";
import { allowChanges, connection, hello, now, table } from "./store";
import { setTheme, theme } from "./theme";
import { count, duration, number } from "./time";

const titles: Record<string, string> = {
  inbox: "Inbox",
  environments: "Environments",
  catalogs: "Catalogs",
  git: "Git",
  pipelines: "Pipelines",
  history: "History",
  settings: "Settings",
};

export function Shell(): JSX.Element {
  if (ended.value !== null) return <Ended />;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <Header />
      <Navigation />
      <main id="main" tabIndex={-1}>
        <Numbers />
        <Connection />
        <Screen />
      </main>
      <ActionDialog />
      {helpOpen.value && <Help />}
    </>
  );
}

function Screen(): JSX.Element {
  const { screen, parts } = route.value;
  const content = useRef("");
  const place = [screen, ...parts].join("/");
  useEffect(() => {
    if (content.current !== "" && content.current !== place) {
      scrollTo(0, 0);
      document.getElementById("main")?.focus({ preventScroll: true });
    }
    content.current = place;
  }, [place]);
  return <Chosen key={place} screen={screen} parts={parts} />;
}

function Chosen({ screen, parts }: { screen: string; parts: string[] }): JSX.Element {
  const [first = "", second = "", third = ""] = parts;
  switch (screen) {
    case "environments":
      return second ? <EnvironmentScreen namespace={first} name={second} /> : <EnvironmentsScreen />;
    case "catalogs":
      return second ? <CatalogScreen namespace={first} name={second} /> : <CatalogsScreen />;
    case "git":
      return <GitScreen />;
    case "pipelines":
      return <PipelinesScreen />;
    case "changes":
      return <ChangeScreen namespace={first} name={second} />;
    case "history":
      return third ? <LifeScreen namespace={first} resource={second} name={third} /> : <HistoryScreen />;
    case "settings":
      return <SettingsScreen />;
  }
  return <InboxScreen />;
}

function Header(): JSX.Element {
  const who = hello.value;
  const switchChanges = (allow: boolean) => void post("/api/allow", { allow }).then(() => (allowChanges.value = allow), () => undefined);
  const next = { system: "light", light: "dark", dark: "system" } as const;
  const themeIcon = { system: "auto", light: "sun", dark: "moon" }[theme.value];
  return (
    <header class="top">
      <a class="brand" href={to(["inbox"])} aria-label="Slipstream, inbox">
        <img src="/favicon.svg" alt="" width="20" height="20" />
        <span>Slipstream</span>
      </a>
      {who && (
        <p class="where">
          <span class="context" title={`Context ${who.context}`}>
            {who.context}
          </span>
          <Scope namespace={who.namespace} hosted={who.hosted === true} />
        </p>
      )}
      <div class="tools">
        <Switch label="Allow changes" on={allowChanges.value} change={switchChanges} hint="Without it, the page only reads" />
        <button type="button" class="quiet icon-only" onClick={() => setTheme(next[theme.value])} aria-label={`Theme: ${theme.value}. Change it`} title={`Theme: ${theme.value}`}>
          <Icon of={themeIcon} />
        </button>
        <button type="button" class="quiet icon-only" onClick={() => (helpOpen.value = true)} aria-label="Keys and help" title="Keys and help (?)">
          <Icon of="help" />
        </button>
      </div>
    </header>
  );
}

// Scope shows the namespace of the page. Behind a proxy, the user can choose another one.
function Scope({ namespace, hosted }: { namespace: string; hosted: boolean }): JSX.Element {
  const text = namespace === "" ? "all namespaces" : `namespace ${namespace}`;
  if (!hosted) return <span class="scope">{text}</span>;
  const choose = () => (ended.value = { reason: "", todo: "", ask: "namespace" });
  return (
    <button type="button" class="quiet small scope" onClick={choose} title="Show another namespace">
      {text}
    </button>
  );
}

function Navigation(): JSX.Element {
  const here = route.value.screen === "changes" ? "history" : route.value.screen;
  const items = waiting.value.length;
  return (
    <nav class="side" aria-label="Screens">
      <ul>
        {screens.map((screen) => (
          <li key={screen}>
            <a href={to([screen])} aria-current={here === screen ? "page" : undefined}>
              <Icon of={screen} />
              <span>{titles[screen]}</span>
              {screen === "inbox" && items > 0 && <span class="badge">{number(items)}</span>}
            </a>
          </li>
        ))}
      </ul>
      <Foot />
    </nav>
  );
}

function Foot(): JSX.Element {
  const { state } = connection.value;
  const text = { live: "Live", connecting: "Connecting", lost: "Disconnected" }[state];
  return (
    <div class="foot">
      <p class={`live ${state === "live" ? "up" : state}`}>
        <span class="dot" aria-hidden="true" />
        {text}
      </p>
      {hello.value && (
        <>
          <p class="user" title={hello.value.user}>
            {hello.value.user}
          </p>
          <p class="version">{hello.value.version}</p>
          <button type="button" class="quiet small" onClick={() => void endSession()}>
            {hello.value.hosted && !hello.value.logoutURL ? "Close" : "Log out"}
          </button>
        </>
      )}
    </div>
  );
}

// Numbers counts the environments by their states. Each number filters the list of environments.
function Numbers(): JSX.Element {
  const environments = table("environments").value;
  const listed = route.value.screen === "environments" && route.value.parts.length === 0;
  const filter = listed ? (route.value.query.state ?? "") : "";
  if (environments.phase !== "ready") return <div class="numbers" />;
  const counts = new Map<StateKind, number>();
  for (const row of environments.rows.values()) {
    const kind = environmentKindOf(environments, row);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return (
    <div class="numbers" role="group" aria-label="Environments by state">
      <NumberLink state="" text={count(environments.rows.size, "environment")} pressed={listed && filter === ""} />
      {kinds.map((kind) => (
        <NumberLink key={kind} state={kind} text={kind === "conflict" ? count(counts.get(kind) ?? 0, "conflict") : `${number(counts.get(kind) ?? 0)} ${nouns[kind]}`} pressed={listed && filter === kind} none={!counts.get(kind)} />
      ))}
    </div>
  );
}

function NumberLink({ state, text, pressed, none }: { state: string; text: string; pressed: boolean; none?: boolean }): JSX.Element {
  const address = to(["environments"], { state: pressed ? "" : state });
  return (
    <button type="button" class={`number ${state} ${none ? "none" : ""}`} aria-pressed={pressed} onClick={() => (location.hash = address)}>
      {state !== "" && <Icon of={state} />}
      {text}
    </button>
  );
}

function Connection(): JSX.Element | null {
  const { state, since, error } = connection.value;
  if (state !== "lost") return hello.value?.note ? <Notice kind="stopped">{hello.value.note}</Notice> : null;
  return (
    <div class="toast">
      <Notice kind="failed">
      Disconnected. What you see is {duration(now.value - since)} old. {error}
      </Notice>
    </div>
  );
}

// Ended is shown instead of the page while the tab has no session.
function Ended(): JSX.Element {
  const { reason, todo, ask } = ended.value!;
  return (
    <main id="main" class="ended">
      <img src="/favicon.svg" alt="" width="40" height="40" />
      <h1>{ask === "namespace" ? "Which namespace?" : "You are not logged in"}</h1>
      {reason && <p>{reason}</p>}
      {ask === "namespace" ? <NamespaceForm /> : ask === "login" ? <LoginAgain todo={todo} /> : <NewLink />}
    </main>
  );
}

function NewLink(): JSX.Element {
  return (
    <>
      <p>Go to the terminal where this command runs, press Enter, and open the link that it prints. If it does not run any more, start it again:</p>
      <Command line="kubectl slipstream dashboard" />
      <p class="hint">A link works once, and for 60 seconds.</p>
    </>
  );
}

function LoginAgain({ todo }: { todo: string }): JSX.Element {
  return (
    <>
      {todo && <p>{todo}.</p>}
      <button type="button" class="primary" onClick={() => location.reload()}>
        Reload the page
      </button>
    </>
  );
}

function NamespaceForm(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const submit = (e: Event) => {
    e.preventDefault();
    void chooseNamespace(input.current?.value.trim() ?? "");
  };
  return (
    <form onSubmit={submit}>
      <label>
        <span>Namespace</span>
        <input ref={input} type="text" defaultValue={chosenNamespace()} autocomplete="off" spellcheck={false} maxLength={63} pattern="[a-z0-9]([-a-z0-9]*[a-z0-9])?" />
      </label>
      <p class="hint">Leave it empty for all namespaces, which only some users may see.</p>
      <button type="submit" class="primary">
        Show it
      </button>
    </form>
  );
}
