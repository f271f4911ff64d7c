// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Icons, drawn on a grid of 16. They are beside words, so they are hidden from screen readers.
import type { JSX } from "preact";

const paths: Record<string, string> = {
  synced: "M5 8.2 7.2 10.4 11.2 5.8M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Z",
  waiting: "M8 4.5V8l2.4 1.6M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Z",
  syncing: "M13.5 3v3.5H10M2.5 13V9.500H6M13 6.500A5.500 5.500 0 0 0 3.200 5M3 9.500A5.500 5.500 0 0 0 12.800 11",
  conflict: "M8 1.8 14.2 8 8 14.200 1.800 8ZM8 5.200v3.300M8 10.600v.1",
  failed: "M5.300 1.500h5.400l3.800 3.800v5.400l-3.800 3.800H5.300l-3.800-3.800V5.300ZM5.800 5.800l4.400 4.400M10.200 5.800l-4.400 4.400",
  stopped: "M6.200 5.500v5M9.800 5.500v5M8 1.500a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13Z",
  warning: "M8 2 14.500 13.500H1.500ZM8 6.300v3.200M8 11.400v.1",
  inbox: "M2 9.500 4 3h8l2 6.500V13H2ZM2 9.500h3.500l1 2h3l1-2H14",
  environments: "M2 5 8 2l6 3-6 3ZM2 8l6 3 6-3M2 11l6 3 6-3",
  catalogs: "M2.500 2.500h4.500v4.500H2.500ZM9 2.500h4.500v4.500H9ZM2.500 9h4.500v4.500H2.500ZM9 9h4.500v4.500H9Z",
  git: "M4.500 5.500v5M4.500 5.500a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400ZM4.500 13.900a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400ZM11.500 6.900a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400ZM11.500 6.900c0 2.500-4 2.100-6.300 3.800",
  pipelines: "M1.500 8h5M9.500 8h5M6.500 5h3v6h-3ZM12.500 6l2 2-2 2",
  history: "M2 3.500v3.300h3.300M2.300 6.800A6 6 0 1 1 2 9M8 5v3.300l2.200 1.500",
  settings: "M2 4.500h6M12 4.500h2M2 11.500h2M8 11.500h6M10 2.700v3.600M6 9.700v3.600",
  search: "M7 2.500a4.500 4.500 0 1 1 0 9 4.500 4.500 0 0 1 0-9ZM10.300 10.300 14 14",
  chevron: "M6 3.500 10.500 8 6 12.500",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 1v1.600M8 13.400V15M1 8h1.600M13.400 8H15M3.100 3.100l1.100 1.100M11.800 11.800l1.100 1.100M12.900 3.100l-1.100 1.100M4.200 11.800l-1.100 1.100",
  moon: "M13.500 9.800A6 6 0 0 1 6.200 2.500a6 6 0 1 0 7.300 7.300Z",
  auto: "M2.500 3h11v8h-11ZM6 13.500h4",
  help: "M6 6.200a2 2 0 1 1 2.900 1.800c-.6.300-.9.700-.9 1.300M8 11.400v.1M8 1.500a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13Z",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.500 5.500h8v8h-8ZM10.500 5.500v-3h-8v8h3",
  lock: "M3.500 7.500h9v6h-9ZM5.500 7.500v-2a2.500 2.500 0 0 1 5 0v2",
  pin: "M8 9.500v5M5 2h6M6 2v3.500L4 9.500h8l-2-4V2",
};

export function Icon({ of, class: name = "" }: { of: string; class?: string }): JSX.Element {
  return (
    <svg class={`icon ${name}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[of] ?? ""} />
    </svg>
  );
}
