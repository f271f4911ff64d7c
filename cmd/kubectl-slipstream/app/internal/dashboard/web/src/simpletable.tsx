// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// A short table of which all rows are shown.
import type { ComponentChildren, JSX } from "preact";
import { useSteady } from "./steady";

export interface Field<T> {
  title: string;
  cell: (item: T) => ComponentChildren;
  end?: boolean;
  // wide columns are left out on a narrow screen.
  wide?: boolean;
}

export function SimpleTable<T>(props: { label: string; fields: Field<T>[]; items: T[]; keyOf: (item: T) => string }): JSX.Element {
  const { items, ...pointer } = useSteady(props.items, props.keyOf);
  const style = (field: Field<T>) => `${field.end ? "end" : ""} ${field.wide ? "wide-only" : ""}`;
  return (
    <div class="table-frame" role="region" aria-label={props.label} tabIndex={0} {...pointer}>
      <table class="simple">
        <caption class="hidden">{props.label}</caption>
        <thead>
          <tr>
            {props.fields.map((field) => (
              <th key={field.title} scope="col" class={style(field)}>
                {field.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={props.keyOf(item)}>
              {props.fields.map((field) => (
                <td key={field.title} class={style(field)} data-title={field.title}>
                  {field.cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
