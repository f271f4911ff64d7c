// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

const (
	sans = "font-family:-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
	mono = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;"
	wrap = "overflow-wrap:anywhere;word-break:break-word;"
	pill = sans + "display:inline-block;padding:3px 10px;border-radius:999px;font-size:12px;line-height:18px;font-weight:600;"
	diff = mono + wrap + "font-size:13px;line-height:19px;padding:3px 12px;"
	bar  = "height:4px;font-size:0;line-height:0;border-radius:10px 10px 0 0;"
)

// styles are the styles of classes, in light colours.
var styles = map[string]string{
	"page":    "margin:0;padding:0;background-color:#f3f4f6;",
	"outer":   "padding:24px 12px;",
	"card":    "width:100%;max-width:600px;background-color:#ffffff;border:1px solid #dfe2e7;border-radius:12px;border-collapse:separate;",
	"body":    "padding:22px 28px 26px;text-align:left;",
	"hidden":  "display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;font-size:1px;line-height:1px;",
	"cluster": sans + wrap + "padding-left:10px;font-size:13px;line-height:24px;color:#656d76;",
	"title":   sans + wrap + "margin:12px 0 0;font-size:20px;line-height:27px;font-weight:600;color:#1f2328;",
	"note":    sans + "margin:12px 0 0;padding:8px 12px;border-radius:6px;background-color:#fff8c5;color:#633c01;font-size:14px;line-height:20px;",
	"text":    sans + wrap + "margin:14px 0 0;font-size:15px;line-height:23px;color:#1f2328;white-space:pre-wrap;",
	"facts":   "margin:16px 0 0;",
	"label":   sans + "width:112px;padding:4px 12px 4px 0;vertical-align:top;font-size:14px;line-height:21px;color:#656d76;",
	"value":   sans + wrap + "padding:4px 0;vertical-align:top;font-size:14px;line-height:21px;color:#1f2328;",
	"link":    "color:#0969da;text-decoration:underline;",
	"sha":     mono + "font-size:13px;color:#0969da;text-decoration:underline;",
	"section": sans + "margin:20px 0 6px;font-size:12px;line-height:18px;font-weight:600;color:#656d76;",
	"box":     "border:1px solid #dfe2e7;border-radius:6px;border-collapse:separate;overflow:hidden;",
	"path":    diff + "padding-top:7px;padding-bottom:6px;background-color:#f6f8fa;color:#1f2328;",
	"before":  diff + "background-color:#ffebe9;color:#82071e;",
	"after":   diff + "background-color:#dafbe1;color:#116329;",
	"muted":   "color:#656d76;",
	"code":    mono + wrap + "padding:10px 12px;background-color:#f6f8fa;color:#1f2328;font-size:13px;line-height:19px;",
	"action":  "padding:22px 0 0;",
	"button":  sans + "display:inline-block;padding:10px 18px;border-radius:6px;background-color:#1f2328;color:#ffffff;font-size:14px;line-height:20px;font-weight:600;text-decoration:none;",
	"footer":  sans + wrap + "padding:16px 28px;font-size:12px;line-height:18px;color:#656d76;text-align:center;",
	"chips":   "margin:14px 0 0;line-height:30px;",
	"subject": sans + wrap + "margin:22px 0 2px;padding:0 0 6px;border-bottom:1px solid #dfe2e7;font-size:15px;line-height:22px;font-weight:600;color:#1f2328;",
	"entry":   sans + wrap + "padding:8px 0;vertical-align:top;font-size:14px;line-height:20px;color:#1f2328;",
	"detail":  sans + wrap + "font-size:13px;line-height:19px;color:#656d76;",
	"more":    sans + wrap + "margin:20px 0 0;font-size:14px;line-height:21px;color:#656d76;",

	"pill-error":   pill + "background-color:#ffebe9;color:#a40e26;",
	"pill-warning": pill + "background-color:#fff8c5;color:#7d4e00;",
	"pill-info":    pill + "background-color:#ddf4ff;color:#0550ae;",
	"pill-good":    pill + "background-color:#dafbe1;color:#116329;",
	"bar-error":    bar + "background-color:#cf222e;",
	"bar-warning":  bar + "background-color:#bf8700;",
	"bar-info":     bar + "background-color:#0969da;",
	"bar-good":     bar + "background-color:#1a7f37;",
	"mark-error":   mark + "color:#cf222e;",
	"mark-warning": mark + "color:#9a6700;",
	"mark-info":    mark + "color:#0969da;",
	"mark-good":    mark + "color:#1a7f37;",
}

const mark = sans + "width:22px;padding:8px 0;vertical-align:top;font-size:14px;line-height:20px;font-weight:700;"

// styleSheet has what inline styles cannot: dark colours, and a single column on narrow screens. Mail programs that ignore it
// show the light page.
const styleSheet markup = `<style>
:root { color-scheme: light dark; supported-color-schemes: light dark; }
@media (max-width: 480px) {
  .outer { padding: 12px 6px !important; }
  .body { padding: 16px 16px 20px !important; }
  .title { font-size: 18px !important; line-height: 24px !important; }
  .label, .value { display: block !important; width: auto !important; }
  .label { padding: 8px 0 0 !important; font-size: 12px !important; line-height: 18px !important; }
  .value { padding: 0 !important; }
  .button { display: block !important; text-align: center !important; }
  .footer { padding: 14px 12px !important; }
}
@media (prefers-color-scheme: dark) {
  .page { background-color: #0d1117 !important; }
  .card { background-color: #161b22 !important; border-color: #30363d !important; }
  .title, .text, .value, .entry, .subject { color: #e6edf3 !important; }
  .label, .section, .muted, .detail, .footer, .more, .cluster { color: #9198a1 !important; }
  .link, .sha { color: #58a6ff !important; }
  .box, .subject { border-color: #30363d !important; }
  .path, .code { background-color: #0d1117 !important; color: #e6edf3 !important; }
  .before { background-color: #3d1518 !important; color: #ffc1ba !important; }
  .after { background-color: #10321c !important; color: #aff5b4 !important; }
  .note { background-color: #3a2d08 !important; color: #f0d98a !important; }
  .button { background-color: #e6edf3 !important; color: #0d1117 !important; }
  .pill-error { background-color: #4a1518 !important; color: #ffb3ad !important; }
  .pill-warning { background-color: #3f3006 !important; color: #f2cc60 !important; }
  .pill-info { background-color: #0c2d57 !important; color: #a5d6ff !important; }
  .pill-good { background-color: #10381f !important; color: #7ee787 !important; }
  .mark-error { color: #ff7b72 !important; }
  .mark-warning { color: #e3b341 !important; }
  .mark-info { color: #58a6ff !important; }
  .mark-good { color: #3fb950 !important; }
}
</style>
`
