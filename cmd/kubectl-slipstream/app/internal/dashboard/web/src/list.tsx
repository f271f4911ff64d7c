// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// A list of rows of the same height, of which only those in the window are in the document. While the pointer is over it, rows stay where
// they are: updates wait behind a button.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { addList, chooseList, type ListKeys } from "./keys";
import { useMedia } from "./parts";
import { count } from "./time";

export interface Column<T> {
  title: string;
  // width is a size of a CSS grid.
  width: string;
  cell: (item: T) => ComponentChildren;
  // from is the width of the list from which on the column is shown.
  from?: number;
  end?: boolean;
  // untitled hides the title, which is then only for screen readers.
  untitled?: boolean;
  // narrow puts the column into the first, second or third line of a narrow list. Others are not shown there.
  narrow?: 1 | 2 | 3;
}

export interface ListProps<T> {
  label: string;
  columns: Column<T>[];
  items: T[];
  keyOf: (item: T) => string;
  // versionOf changes whenever the item does.
  versionOf: (item: T) => string;
  open?: (item: T) => void;
  // group is the heading above the items with the same group, which are next to each other.
  group?: (item: T) => string;
  // end is called when the last rows are in the window.
  end?: () => void;
  empty: ComponentChildren;
  // press handles keys on the selected item, and reports whether it did.
  press?: (key: string, item: T) => boolean;
  // view identifies the filter. Another one shows its items at once.
  view?: string;
}

type Line<T> = { heading: string; size: number } | { item: T; index: number };

const narrowList = 560;
const overscan = 8;

export function List<T>(props: ListProps<T>): JSX.Element {
  const [frame, setFrame] = useState<HTMLElement | null>(null);
  const [over, setOver] = useState(false);
  const { shown, waiting, take } = useHeld(props, over);
  const width = useWidth(frame);
  const narrow = width < narrowList;
  const coarse = useMedia("(pointer: coarse)");
  const height = narrow ? (props.columns.some((each) => each.narrow === 3) ? 102 : 60) : coarse ? 44 : 38;
  const lines = useMemo(() => linesOf(shown, props.group), [shown, props.group]);
  const [from, until] = useWindow(frame, lines.length, height);
  const selection = useSelection(props, shown, lines, frame, height);
  useEffect(() => {
    if (props.end && until >= lines.length - overscan) props.end();
  }, [until, lines.length]);
  if (shown.length === 0) return <>{props.empty}</>;
  const columns = props.columns.filter((each) => (narrow ? each.narrow : width >= (each.from ?? 0)));
  const template = narrow ? "minmax(0, 1fr) auto" : columns.map((each) => each.width).join(" ");
  return (
    <div class="list-frame" onPointerEnter={(e) => e.pointerType === "mouse" && setOver(true)} onPointerLeave={() => setOver(false)}>
      {waiting > 0 && (
        <button type="button" class="updates" onClick={take}>
          {count(waiting, "update")}
        </button>
      )}
      <div class={`list ${narrow ? "narrow" : ""}`} role="grid" aria-label={props.label} aria-rowcount={lines.length + 1} onFocusIn={selection.register}>
        <div class="list-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
          {columns.map((each) => (
            <span key={each.title} role="columnheader" class={each.end ? "end" : ""}>
              {each.untitled ? <span class="hidden">{each.title}</span> : each.title}
            </span>
          ))}
        </div>
        <div class="list-body" role="rowgroup" ref={setFrame} style={{ height: `${lines.length * height}px` }}>
          {visible(lines, from, until, selection.line).map((at) => (
            <ListLine key={lineKey(lines[at]!, props.keyOf)} at={at} line={lines[at]!} {...{ props, columns, template, height, narrow, selection }} />
          ))}
        </div>
      </div>
    </div>
  );
}

interface Selection<T> {
  key: string;
  line: number;
  register: () => void;
  select: (item: T) => void;
}

function ListLine<T>(of: {
  at: number;
  line: Line<T>;
  props: ListProps<T>;
  columns: Column<T>[];
  template: string;
  height: number;
  narrow: boolean;
  selection: Selection<T>;
}): JSX.Element {
  const place = { transform: `translateY(${of.at * of.height}px)`, height: `${of.height}px` };
  if ("heading" in of.line) {
    return (
      <div class="list-group" role="row" aria-rowindex={of.at + 2} style={place}>
        <span role="gridcell" aria-colspan={of.columns.length}>
          {of.line.heading} <span class="count">{of.line.size}</span>
        </span>
      </div>
    );
  }
  const { item } = of.line;
  const key = of.props.keyOf(item);
  const selected = key === of.selection.key;
  return (
    <div
      class={`list-row ${of.props.open ? "opens" : ""}`}
      role="row"
      data-key={key}
      aria-rowindex={of.at + 2}
      aria-selected={selected}
      tabIndex={selected || (of.selection.key === "" && of.at <= 1) ? 0 : -1}
      style={{ ...place, gridTemplateColumns: of.template }}
      onFocus={() => of.selection.select(item)}
      onClick={(e) => {
        const control = (e.target as Element).closest("a, button, input");
        if (control === null && getSelection()?.isCollapsed !== false) of.props.open?.(item);
      }}
    >
      {of.columns.map((each) => (
        <span key={each.title} role="gridcell" class={`${each.end && !of.narrow ? "end" : ""} ${of.narrow ? `line${each.narrow}` : ""}`}>
          {each.cell(item)}
        </span>
      ))}
    </div>
  );
}

function linesOf<T>(items: T[], group: ((item: T) => string) | undefined): Line<T>[] {
  if (!group) return items.map((item, index) => ({ item, index }));
  const lines: Line<T>[] = [];
  let heading: { heading: string; size: number } | undefined;
  items.forEach((item, index) => {
    const name = group(item);
    if (heading?.heading !== name) lines.push((heading = { heading: name, size: 0 }));
    heading.size++;
    lines.push({ item, index });
  });
  return lines;
}

const lineKey = <T,>(line: Line<T>, keyOf: (item: T) => string): string => ("heading" in line ? `heading ${line.heading}` : keyOf(line.item));

// visible returns the lines in the window, and the selected one, which must not lose the focus.
function visible(lines: unknown[], from: number, until: number, selected: number): number[] {
  const all: number[] = [];
  for (let i = from; i < Math.min(until, lines.length); i++) all.push(i);
  if (selected >= 0 && selected < lines.length && (selected < from || selected >= until)) all.push(selected);
  return all;
}

// continues reports whether a list is another one with more items at its end: no row moves then.
const continues = <T,>(old: T[], items: T[]): boolean => items.length > old.length && items[0] === old[0] && items[old.length - 1] === old[old.length - 1];

// useHeld returns the items to show: the newest, or those from before the pointer came.
function useHeld<T>(props: ListProps<T>, over: boolean): { shown: T[]; waiting: number; take: () => void } {
  const held = useRef(props.items);
  const view = useRef(props.view);
  const [, setTaken] = useState(0);
  if (!over || held.current.length === 0 || view.current !== props.view || continues(held.current, props.items)) held.current = props.items;
  view.current = props.view;
  const waiting = useMemo(() => (held.current === props.items ? 0 : differences(held.current, props)), [held.current, props.items]);
  return {
    shown: held.current,
    waiting,
    take: () => {
      held.current = props.items;
      setTaken((n) => n + 1);
    },
  };
}

function differences<T>(held: T[], { items, keyOf, versionOf }: ListProps<T>): number {
  const old = new Map(held.map((item) => [keyOf(item), versionOf(item)]));
  let n = 0;
  for (const item of items) {
    const key = keyOf(item);
    if (old.get(key) !== versionOf(item)) n++;
    old.delete(key);
  }
  return n + old.size;
}

function useWidth(of: HTMLElement | null): number {
  const [width, setWidth] = useState(() => Math.min(innerWidth, 1000));
  useLayoutEffect(() => {
    if (!of) return;
    setWidth(of.clientWidth);
    const observer = new ResizeObserver((entries) => setWidth(entries[0]!.contentRect.width));
    observer.observe(of);
    return () => observer.disconnect();
  }, [of]);
  return width;
}

// useWindow returns the lines that are in the window of the browser.
function useWindow(of: HTMLElement | null, lines: number, height: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, Math.ceil(innerHeight / height) + overscan]);
  useLayoutEffect(() => {
    const measure = () => {
      if (!of) return;
      const above = -of.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(above / height) - overscan);
      const until = Math.max(0, Math.ceil((above + innerHeight) / height) + overscan);
      setRange((old) => (old[0] === from && old[1] === until ? old : [from, until]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [of, lines, height]);
  return range;
}

// useSelection keeps the selected row by its key, and moves it by keys.
function useSelection<T>(
  props: ListProps<T>,
  shown: T[],
  lines: Line<T>[],
  frame: HTMLElement | null,
  height: number,
): Selection<T> {
  const [key, setKey] = useState("");
  const keys = useRef<ListKeys>({ move: () => undefined, press: () => false });
  const index = useMemo(() => (key === "" ? -1 : shown.findIndex((item) => props.keyOf(item) === key)), [shown, key]);
  keys.current.move = (by) => {
    const item = shown[Math.min(Math.max(index < 0 ? 0 : index + by, 0), shown.length - 1)];
    if (!item) return;
    setKey(props.keyOf(item));
    const line = lines.findIndex((each) => "item" in each && each.item === item);
    reveal(frame, line, height);
    requestAnimationFrame(() => frame?.querySelector<HTMLElement>(`[data-key="${CSS.escape(props.keyOf(item))}"]`)?.focus({ preventScroll: true }));
  };
  keys.current.press = (pressed) => {
    const item = shown[index];
    if (!item) return false;
    if (pressed !== "Enter") return props.press?.(pressed, item) ?? false;
    props.open?.(item);
    return props.open !== undefined;
  };
  const register = () => chooseList(keys.current);
  useEffect(() => addList(keys.current), []);
  const line = useMemo(() => (index < 0 ? -1 : lines.findIndex((each) => "item" in each && each.index === index)), [lines, index]);
  return { key: index < 0 ? "" : key, line, register, select: (item) => setKey(props.keyOf(item)) };
}

// reveal scrolls a line into the window.
function reveal(frame: HTMLElement | null, line: number, height: number): void {
  if (!frame || line < 0) return;
  const top = frame.getBoundingClientRect().top + line * height;
  const margin = 140;
  if (top < margin) scrollBy({ top: top - margin });
  else if (top + height > innerHeight - 60) scrollBy({ top: top + height - innerHeight + 60 });
}
