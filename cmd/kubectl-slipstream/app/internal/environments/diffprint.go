// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// shortHash is the length of an abbreviated commit hash, as in Git.
	shortHash = 7
	// authorColumn is where the author begins after a short value.
	authorColumn = 25
	// valueIndent is before values.
	valueIndent = "    "
	// maxName is the longest name beside which fields are aligned.
	maxName = 40
)

// diffPrinter prints plans of syncs.
type diffPrinter struct {
	out     io.Writer
	colours bool
	// decode shows the values of Secrets as text.
	decode bool
	now    time.Time

	// text is what is not printed yet.
	text strings.Builder
}

// print prints the changes of a plan, and their number.
func (p *diffPrinter) print(plan *v1alpha1.SyncPlan) error {
	width := 0
	for i := range plan.Changes {
		if n := utf8.RuneCountInString(nameOf(&plan.Changes[i])); n <= maxName {
			width = max(width, n)
		}
	}
	for i := range plan.Changes {
		p.change(&plan.Changes[i], width)
	}
	p.line("", counted(plan))
	_, err := io.WriteString(p.out, p.text.String())
	return err
}

// counted returns the number of changes by type, as in 2 updates, 1 delete, 14 unchanged.
func counted(plan *v1alpha1.SyncPlan) string {
	numbers := map[v1alpha1.ChangeType]int{}
	for i := range plan.Changes {
		numbers[plan.Changes[i].ChangeType]++
	}
	var parts []string
	for _, each := range []struct {
		of   v1alpha1.ChangeType
		noun string
	}{{v1alpha1.ChangeAdded, "create"}, {v1alpha1.ChangeChanged, "update"}, {v1alpha1.ChangeRemoved, "delete"}} {
		if n := numbers[each.of]; n > 0 {
			parts = append(parts, summary.Count(n, each.noun))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "No difference")
	}
	if plan.Unchanged > 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", plan.Unchanged))
	}
	return strings.Join(parts, ", ")
}

// line adds a line in a colour.
func (p *diffPrinter) line(colour cli.Colour, text string) {
	p.text.WriteString(colour.Paint(printable.Line(text), p.colours) + "\n")
}

func nameOf(change *v1alpha1.ObjectChange) string { return change.Kind + "/" + change.Name }

// change prints an object that would be changed.
func (p *diffPrinter) change(change *v1alpha1.ObjectChange, width int) {
	by := p.origin(change)
	head := func(sign, text string) string {
		return strings.TrimRight(fmt.Sprintf("%s %-*s  %s", sign, width, nameOf(change), text), " ")
	}
	switch change.ChangeType {
	case v1alpha1.ChangeAdded:
		p.line(cli.Green, head("+", withOrigin("to create", by)))
	case v1alpha1.ChangeRemoved:
		p.line(cli.Red, head("-", withOrigin("to delete", by)))
	case v1alpha1.ChangeChanged:
		for i := range change.Fields {
			p.field(change, &change.Fields[i], head, by)
			by = "" // It is that of the object, not of each field.
		}
		if len(change.Fields) == 0 {
			p.line(cli.Bold, head("~", withOrigin("to update", by)))
		}
	}
	if change.Refusal != "" {
		p.line(cli.Red, valueIndent+"! "+change.Refusal)
	}
}

func withOrigin(text, by string) string {
	if by == "" {
		return text
	}
	return text + "  " + by
}

// field prints the change of a field.
func (p *diffPrinter) field(change *v1alpha1.ObjectChange, field *v1alpha1.FieldChange, head func(sign, text string) string, by string) {
	if field.Hidden {
		p.line(cli.Bold, head("~", withOrigin(hiddenField(change, field)+ownersOf(field), by)))
		return
	}
	p.line(cli.Bold, head("~", dotted(field.Field)+ownersOf(field)))
	before, after := p.value(change, field, field.Before), p.value(change, field, field.After)
	if len(before) > 1 && len(after) > 1 {
		p.multiline(before, after, by)
		return
	}
	for i, line := range before {
		if len(after) > 0 || i > 0 {
			p.line(cli.Red, valueIndent+"- "+line)
			continue
		}
		p.line(cli.Red, besides(valueIndent+"- "+line, by))
	}
	for i, line := range after {
		if i > 0 {
			p.line(cli.Green, valueIndent+"+ "+line)
			continue
		}
		p.line(cli.Green, besides(valueIndent+"+ "+line, by))
	}
}

// besides adds the author after a value.
func besides(text, by string) string {
	if by == "" {
		return text
	}
	return text + strings.Repeat(" ", max(2, authorColumn-utf8.RuneCountInString(text))) + by
}

// multiline prints the lines of a text that differ, with one line around them.
func (p *diffPrinter) multiline(before, after []string, by string) {
	if by != "" {
		p.line("", valueIndent+"  "+by)
	}
	for _, group := range difflib.NewMatcher(before, after).GetGroupedOpCodes(1) {
		p.line(cli.Cyan, fmt.Sprintf("%s  line %d", valueIndent, group[0].J1+1))
		for _, op := range group {
			if op.Tag == 'e' {
				for _, line := range before[op.I1:op.I2] {
					p.line("", valueIndent+"  "+line)
				}
				continue
			}
			for _, line := range before[op.I1:op.I2] {
				p.line(cli.Red, valueIndent+"- "+line)
			}
			for _, line := range after[op.J1:op.J2] {
				p.line(cli.Green, valueIndent+"+ "+line)
			}
		}
	}
}

// value returns the lines of a value, none if there is no value. Texts are shown without quotation marks, unless they look like something
// else, and maps and lists as YAML.
func (p *diffPrinter) value(change *v1alpha1.ObjectChange, field *v1alpha1.FieldChange, encoded *string) []string {
	if encoded == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(*encoded), &value); err != nil {
		return []string{*encoded}
	}
	text, isText := value.(string)
	if isText && p.decode && isSecret(change) && strings.HasPrefix(field.Field, "/data/") {
		text = decoded(text)
	}
	if isText && strings.Contains(text, "\n") {
		return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	if isText {
		value = text
	}
	return strings.Split(yamlOf(value, *encoded), "\n")
}

// yamlOf returns a value as YAML, or the alternative if it has none.
func yamlOf(value any, otherwise string) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return otherwise
	}
	return strings.TrimSuffix(string(text), "\n")
}

// decoded returns the text of a Secret's value, or its size if it is no text.
func decoded(encoded string) string {
	value, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return encoded
	case !utf8.Valid(value):
		return summary.Count(len(value), "byte") + ", no text"
	}
	return string(value)
}

// hiddenField describes the change of a field without its values, as in key password changed (value hidden).
func hiddenField(change *v1alpha1.ObjectChange, field *v1alpha1.FieldChange) string {
	name := dotted(field.Field)
	if path, err := fieldpath.Parse(field.Field); err == nil && isSecret(change) && len(path) == 2 && path[0].Field == "data" {
		name = "key " + path[1].Field
	}
	return fmt.Sprintf("%s %s (value hidden)", name, strings.ToLower(string(field.ChangeType)))
}

// ownersOf returns who owns a field in the environment, if that is not only this server, and whether a user has to decide.
func ownersOf(field *v1alpha1.FieldChange) string {
	others := slices.DeleteFunc(slices.Clone(field.Owners), func(owner string) bool { return owner == v1alpha1.FieldManager })
	switch {
	case field.Conflict && len(others) == 0:
		return "  (conflict)"
	case field.Conflict:
		return "  (conflict: owned by " + strings.Join(others, ", ") + ")"
	case len(others) > 0:
		return "  (owned by " + strings.Join(others, ", ") + ")"
	}
	return ""
}

// origin returns who made a change in the source, how that is known, and the newest commit with it. It is empty if nothing is known.
func (p *diffPrinter) origin(change *v1alpha1.ObjectChange) string {
	var parts []string
	if by := authorsOf(change.ChangedBy, ", "); by != "" {
		parts = append(parts, by)
	}
	if commit := p.commit(change.Commits); commit != "" {
		parts = append(parts, commit)
	}
	return strings.Join(parts, ", ")
}

// commit returns the newest commit with a change, and its age.
func (p *diffPrinter) commit(commits []v1alpha1.MirroredCommit) string {
	if len(commits) == 0 {
		return ""
	}
	text := "commit " + commits[0].SHA[:min(shortHash, len(commits[0].SHA))]
	if more := len(commits) - 1; more > 0 {
		text += " and " + fmt.Sprint(more) + " more"
	}
	return text + ", " + duration.HumanDuration(p.now.Sub(commits[0].Time.Time)) + " ago"
}

// authorsOf returns the authors of a change, each with the signal after the separator.
func authorsOf(authors []v1alpha1.SourceAuthor, separator string) string {
	end := ""
	if separator == " (" {
		end = ")"
	}
	var names []string
	for _, author := range authors {
		switch {
		case author.Username != "":
			names = append(names, author.Username+separator+strings.ToLower(string(author.Signal))+end)
		case author.FieldManager != "":
			names = append(names, "field manager "+author.FieldManager)
		default:
			names = append(names, "author unknown")
		}
	}
	return strings.Join(names, "; ")
}

// dotted returns a path as people write it: spec.template.spec.containers[web].image. A list item is named by its keys, or its value.
func dotted(field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return field
	}
	var text strings.Builder
	for i, step := range path {
		switch {
		case step.IsValue:
			text.WriteString("[" + step.Field + "]")
		case step.Keys != nil:
			text.WriteString("[" + keysOf(step.Keys) + "]")
		case strings.ContainsAny(step.Field, `.[]/" `) || step.Field == "":
			text.WriteString("[" + fmt.Sprintf("%q", step.Field) + "]")
		case i > 0:
			text.WriteString("." + step.Field)
		default:
			text.WriteString(step.Field)
		}
	}
	return text.String()
}

// keysOf returns the keys of a list item: the value alone if it is the name.
func keysOf(keys []fieldpath.Key) string {
	if len(keys) == 1 && keys[0].Name == "name" {
		return keys[0].Text
	}
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = key.Name + "=" + key.Text
	}
	return strings.Join(parts, ",")
}
