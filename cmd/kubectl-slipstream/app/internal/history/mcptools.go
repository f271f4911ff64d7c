// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// defaultToolChanges and maxToolChanges are numbers of changes in an answer.
	defaultToolChanges = 50
	maxToolChanges     = 100
	// maxToolFields is the number of fields of a diff that are listed, and maxFieldSize the length of a path or value in bytes.
	maxToolFields = 100
	maxFieldSize  = 300
	// maxChangeFields and maxToolCommits are the numbers of fields and commits of a change that are listed.
	maxChangeFields = 20
	maxToolCommits  = 5
	// maxToolObjects is the number of objects whose names are listed.
	maxToolObjects = 500
	// toolBlameChanges is the number of Changes that are read for the lines of an object.
	toolBlameChanges = 50
	// defaultToolSince is how far back changes are listed.
	defaultToolSince = 24 * time.Hour
)

// addTools adds all tools to a server.
func (m *toolServer) addTools(ctx context.Context, server *mcp.Server) {
	addTool(ctx, m, server, "changes", "What changed, and who changed it",
		"List changes of mirrored Kubernetes objects, newest first: when, who and how that is known, what, the fields that differ, why, and the commits. "+
			"Use it for questions such as what changed in the namespace shop in the last hour and who did it, or who changed a Deployment by hand.",
		listForTool)
	addTool(ctx, m, server, "diff", "What a change changed",
		"Show one change as a unified diff of the object's YAML and as a list of fields. Values of Secrets are masked.",
		diffForTool)
	addTool(ctx, m, server, "state", "Objects as they were",
		"Show the YAML of one object as it was at a time, at a commit, or before or after a change; or, if no object is named, list the names of the objects "+
			"of a namespace at that time. Values of Secrets are masked.",
		stateForTool)
	addTool(ctx, m, server, "blame", "Who wrote each line of an object",
		"Show the YAML of an object in the cluster, each line with the commit, the author and the age of the change that it came with. "+
			"^ marks lines that are as old as the oldest change that was read, or older. Values of Secrets are hidden.",
		blameForTool)
}

// changesQuery are the arguments of the tool changes.
type changesQuery struct {
	Namespace     string `json:"namespace,omitempty" jsonschema:"Namespace of the objects. Default: that of the kubeconfig."`
	AllNamespaces bool   `json:"allNamespaces,omitempty" jsonschema:"List the changes of all namespaces, and of objects without a namespace."`
	Object        string `json:"object,omitempty" jsonschema:"Only changes of an object, as TYPE/NAME such as deployment/web, or of a TYPE such as deployments.apps."`
	Since         string `json:"since,omitempty" jsonschema:"How far to go back: a duration such as 90m or 720h, or a time such as 2026-07-03T08:00:00Z. Default: 24h."`
	Until         string `json:"until,omitempty" jsonschema:"Only changes until this time, or this duration ago. Default: now."`
	Author        string `json:"author,omitempty" jsonschema:"Only changes of the user with exactly this name."`
	Bypass        bool   `json:"bypass,omitempty" jsonschema:"Only changes that bypassed what manages the object, such as Flux, Argo CD or Helm: those made by hand."`
	Limit         int    `json:"limit,omitempty" jsonschema:"Maximum number of changes, at most 100. Default: 50."`
}

// changesData is the data of the tool changes.
type changesData struct {
	Changes []changeRow `json:"changes"`
}

// changeRow is a change in an answer.
type changeRow struct {
	Change     string      `json:"change" jsonschema:"NAMESPACE/NAME of the change, as the other tools take it."`
	When       string      `json:"when"`
	Who        string      `json:"who" jsonschema:"The user; in parentheses the field manager if no user is known."`
	Known      string      `json:"known" jsonschema:"How the user is known."`
	Object     string      `json:"object" jsonschema:"TYPE/NAME of the object, as the other tools take it."`
	Kind       string      `json:"kind,omitempty"`
	Namespace  string      `json:"namespace,omitempty" jsonschema:"Namespace of the object."`
	Operation  string      `json:"operation" jsonschema:"Create, Update, Delete, or Compared: a comparison found the change, which may combine several."`
	Fields     []string    `json:"fields,omitempty" jsonschema:"JSON pointers of fields that differ."`
	MoreFields int32       `json:"moreFields,omitempty" jsonschema:"Number of further fields that differ."`
	Reason     string      `json:"reason,omitempty" jsonschema:"Why, as the author of the change wrote it."`
	ManagedBy  string      `json:"managedBy,omitempty" jsonschema:"The tool or object that manages the object."`
	Bypass     bool        `json:"bypass,omitempty" jsonschema:"The change was not made by what manages the object."`
	Commits    []commitRow `json:"commits,omitempty" jsonschema:"One for each GitDestination, at most 5."`
}

// commitRow is a commit in an answer.
type commitRow struct {
	SHA         string `json:"sha"`
	Destination string `json:"destination" jsonschema:"NAMESPACE/NAME of the GitDestination."`
	Path        string `json:"path"`
	URL         string `json:"url,omitempty"`
}

func listForTool(ctx context.Context, c *toolCall, query changesQuery) (data changesData, err error) {
	data.Changes = []changeRow{}
	limit, err := changesLimit(query.Limit)
	if err != nil {
		return data, err
	}
	c.use(query.Namespace, "")
	l := &changeLog{allNamespaces: query.AllNamespaces, author: query.Author, bypass: query.Bypass}
	now := time.Now()
	if l.since, err = ago("since", query.Since, now, defaultToolSince); err != nil {
		return data, err
	}
	until, err := ago("until", query.Until, now, 0)
	if err != nil {
		return data, err
	}
	if until > 0 {
		l.until = now.Add(-until)
	}
	of, err := c.object(query.Object)
	if err != nil {
		return data, err
	}
	namespace := c.namespace
	if l.allNamespaces = l.allNamespaces || of.clusterScoped; l.allNamespaces {
		namespace = metav1.NamespaceAll // Changes of objects without one are in the namespace of the server, which is not known here.
	}
	found, _, err := l.list(ctx, c.api.Changes(namespace), of, limit+1)
	if err != nil {
		return data, err
	}
	for i := range found {
		row := rowOf(&found[i])
		if i < limit && c.fits(row) {
			data.Changes = append(data.Changes, row)
			continue
		}
		c.cut = append(c.cut, fmt.Sprintf("There are more changes than these %d, the newest ones. Ask for older ones with until: %s, "+
			"or for fewer with object, author, bypass, or a later since.", i, row.When))
		break
	}
	return data, nil
}

func changesLimit(limit int) (int, error) {
	switch {
	case limit < 0 || limit > maxToolChanges:
		return 0, fmt.Errorf("limit is %d: it is a number from 1 to %d", limit, maxToolChanges)
	case limit == 0:
		return defaultToolChanges, nil
	}
	return limit, nil
}

// ago parses a duration or time, and returns how long before now it is.
func ago(argument, text string, now time.Time, unset time.Duration) (time.Duration, error) {
	if text == "" {
		return unset, nil
	}
	age, err := cli.ParseDuration(text)
	if err != nil {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, fmt.Errorf("%s is %q: it is a duration such as 90m or 720h, or a time such as %s", argument, text, now.UTC().Format(time.RFC3339))
		}
		age = now.Sub(at)
	}
	if age <= 0 {
		return 0, fmt.Errorf("%s is %s: it is in the past", argument, text)
	}
	return age, nil
}

// object parses TYPE or TYPE/NAME, or nothing.
func (c *toolCall) object(text string) (of objectRef, err error) {
	if text == "" {
		return of, nil
	}
	if err := c.learn(text); err != nil {
		return of, err
	}
	return pastObject(c.config, text)
}

func rowOf(change *v1alpha1.Change) changeRow {
	spec := &change.Spec
	version, _ := schema.ParseGroupVersion(spec.Object.APIVersion) // The server checks it. Without it the type has no group.
	of := objectRef{resource: version.WithResource(spec.Object.Resource).GroupResource(), name: spec.Object.Name}
	row := changeRow{
		Change: toolLine(change.Namespace + "/" + change.Name), When: spec.Time.UTC().Format(time.RFC3339Nano), Who: toolLine(whoOf(change)),
		Known: strings.TrimPrefix(known(change), ", "), Object: toolLine(of.String()), Kind: toolLine(spec.Object.Kind),
		Namespace: toolLine(spec.Object.Namespace), Operation: toolLine(string(spec.Operation)), MoreFields: spec.MoreFields,
		Reason: toolLine(spec.Reason), Bypass: spec.Bypass,
	}
	if row.Known == "" {
		row.Known = "not known"
	}
	for i, field := range spec.Fields {
		if i == maxChangeFields {
			row.MoreFields += int32(len(spec.Fields) - i)
			break
		}
		row.Fields = append(row.Fields, toolField(field))
	}
	if spec.ManagedBy != nil {
		row.ManagedBy = toolLine(managerOf(spec.ManagedBy))
	}
	for i := range min(len(spec.Commits), maxToolCommits) {
		commit := &spec.Commits[i]
		row.Commits = append(row.Commits, commitRow{
			SHA: toolLine(commit.SHA), Destination: toolLine(commit.DestinationRef.Namespace + "/" + commit.DestinationRef.Name),
			Path: toolLine(commit.Path), URL: toolLine(commit.URL),
		})
	}
	return row
}

// diffQuery are the arguments of the tool diff.
type diffQuery struct {
	Change    string `json:"change" jsonschema:"NAME or NAMESPACE/NAME of a change, or a commit with at least 7 digits."`
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace of the change, if its name has none. Default: that of the kubeconfig."`
	FromLine  int    `json:"fromLine,omitempty" jsonschema:"First line of the diff that is returned. Default: 1."`
}

// diffData is the data of the tool diff.
type diffData struct {
	Change     changeRow  `json:"change"`
	Fields     []fieldRow `json:"fields" jsonschema:"The fields that differ. Empty if the object was created or deleted."`
	MoreFields int        `json:"moreFields,omitempty" jsonschema:"Number of fields that are not listed."`
	Diff       string     `json:"diff" jsonschema:"Unified diff of the object's YAML."`
}

// fieldRow is a field that differs.
type fieldRow struct {
	Field  string `json:"field" jsonschema:"JSON pointer of the field."`
	Did    string `json:"did" jsonschema:"Added, Changed or Removed."`
	Before string `json:"before,omitempty" jsonschema:"The value before as JSON. Long values are cut."`
	After  string `json:"after,omitempty" jsonschema:"The value after as JSON. Long values are cut."`
	Hidden bool   `json:"hidden,omitempty" jsonschema:"The values belong to a Secret, and are not shown."`
}

func diffForTool(ctx context.Context, c *toolCall, query diffQuery) (data diffData, err error) {
	c.use(query.Namespace, "")
	change, err := c.change(ctx, query.Change)
	if err != nil {
		return data, err
	}
	difference, err := c.api.Changes(change.Namespace).Diff(ctx, change.Name, metav1.GetOptions{})
	if err != nil {
		return data, err
	}
	data.Change = rowOf(change)
	c.fits(data.Change)
	data.Fields = []fieldRow{}
	for i := range difference.Fields {
		row := fieldOf(&difference.Fields[i])
		if c.left < maxAnswer/2 || i == maxToolFields || !c.fits(row) { // The diff needs space, too.
			data.MoreFields = len(difference.Fields) - i
			break
		}
		data.Fields = append(data.Fields, row)
	}
	var text bytes.Buffer
	if err := printDifference(&text, change, difference); err != nil {
		return data, err
	}
	lines := slices.Collect(strings.Lines(strings.TrimPrefix(text.String(), "\n")))
	data.Diff, err = c.text(lines, query.FromLine, "use the same change and")
	return data, err
}

func fieldOf(field *v1alpha1.FieldDifference) fieldRow {
	value := func(json *string) string {
		if json == nil {
			return ""
		}
		return toolField(*json)
	}
	return fieldRow{
		Field: toolField(field.Field), Did: toolLine(string(field.ChangeType)), Before: value(field.Before), After: value(field.After), Hidden: field.Hidden,
	}
}

// toolField returns the path or value of a field as one line, cut at maxFieldSize.
func toolField(text string) string { return cutText(toolLine(text), maxFieldSize) }

// stateQuery are the arguments of the tool state.
type stateQuery struct {
	Object      string `json:"object,omitempty" jsonschema:"TYPE/NAME such as deployment/web for the YAML of an object, or TYPE for the names of the objects of a type. Default: the names of all objects of the namespace."`
	At          string `json:"at,omitempty" jsonschema:"A time such as 2026-07-03T08:00:00Z, a duration ago such as 24h, a commit with at least 7 digits, or the name of a change; ^ after a commit or change is the state before it. Default: the newest commit."`
	Namespace   string `json:"namespace,omitempty" jsonschema:"Namespace of the objects. Default: that of the kubeconfig."`
	Labels      string `json:"labels,omitempty" jsonschema:"List only objects with labels, such as app=web."`
	Destination string `json:"destination,omitempty" jsonschema:"The GitDestination to read, as [NAMESPACE/]NAME. Default: the one that the changes name."`
	FromLine    int    `json:"fromLine,omitempty" jsonschema:"First line of the YAML that is returned. Default: 1."`
}

// stateData is the data of the tool state.
type stateData struct {
	Destination string      `json:"destination" jsonschema:"NAMESPACE/NAME of the GitDestination."`
	Commit      string      `json:"commit"`
	CommittedAt string      `json:"committedAt"`
	Objects     []objectRow `json:"objects" jsonschema:"The objects at that commit."`
	YAML        string      `json:"yaml,omitempty" jsonschema:"The object, without what the cluster maintains, such as the status."`
}

// objectRow is an object in an answer.
type objectRow struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func stateForTool(ctx context.Context, c *toolCall, query stateQuery) (data stateData, err error) {
	c.use(query.Namespace, query.Destination)
	data.Objects = []objectRow{}
	at := ""
	if query.At != "" {
		if at, err = c.at("at", query.At); err != nil {
			return data, err
		}
	}
	var args []string
	if query.Object != "" {
		args = []string{query.Object}
	}
	if err := c.learn(query.Object); err != nil {
		return data, err
	}
	sel, err := c.selected(args, query.Labels)
	if err != nil {
		return data, err
	}
	destination, err := c.destinationOf(ctx, sel, at)
	if err != nil {
		return data, err
	}
	options := sel.queries()[0] // Values of Secrets are not asked for.
	options.At, options.Limit = at, maxToolObjects
	p := &past{}
	objects, more, err := c.readPage(ctx, destination, &options, p)
	if err != nil {
		return data, err
	}
	c.warn(p)
	data.Destination = toolLine(destination.Namespace + "/" + destination.Name)
	data.Commit, data.CommittedAt = toolLine(p.commit.SHA), p.commit.Time.UTC().Format(time.RFC3339)
	if len(sel.objects) > 0 {
		return c.content(data, sel.objects[0], objects, query.FromLine)
	}
	return c.names(data, objects, more != ""), nil
}

// content adds the content of the only object.
func (c *toolCall) content(data stateData, of objectRef, objects []*unstructured.Unstructured, from int) (stateData, error) {
	if len(objects) == 0 {
		return data, fmt.Errorf("%s was not in Git at commit %s of %s, or you may not read its type", of, data.Commit, data.Destination)
	}
	lines, err := linesOf(objects[0])
	if err != nil {
		return data, err
	}
	data = c.names(data, objects[:1], false)
	data.YAML, err = c.text(lines, from, "use the same object, at: "+data.Commit+" and")
	return data, err
}

// names adds the names of objects.
func (c *toolCall) names(data stateData, objects []*unstructured.Unstructured, more bool) stateData {
	for i, object := range objects {
		row := objectRow{
			APIVersion: toolLine(object.GetAPIVersion()), Kind: toolLine(object.GetKind()), Namespace: toolLine(object.GetNamespace()), Name: toolLine(object.GetName()),
		}
		if i == maxToolObjects || !c.fits(row) {
			more = true
			break
		}
		data.Objects = append(data.Objects, row)
	}
	if more {
		c.cut = append(c.cut, fmt.Sprintf("There are more objects than these %d. Ask for those of a type with object, or for those with labels.", len(data.Objects)))
	}
	return data
}

// blameQuery are the arguments of the tool blame.
type blameQuery struct {
	Object    string `json:"object" jsonschema:"TYPE/NAME of an object, such as deployment/web."`
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace of the object. Default: that of the kubeconfig."`
	FromLine  int    `json:"fromLine,omitempty" jsonschema:"First line that is returned. Default: 1."`
}

// blameData is the data of the tool blame.
type blameData struct {
	Lines string `json:"lines" jsonschema:"The lines, each with commit, author and age before it."`
}

func blameForTool(ctx context.Context, c *toolCall, query blameQuery) (data blameData, err error) {
	if query.Object == "" {
		return data, errors.New("object is missing: name an object as TYPE/NAME")
	}
	c.use(query.Namespace, "")
	if err := c.learn(query.Object); err != nil {
		return data, err
	}
	var text bytes.Buffer
	b := &blame{session: c.session, limit: toolBlameChanges}
	b.Out = &text
	if err := b.write(ctx, []string{query.Object}); err != nil {
		return data, err
	}
	data.Lines, err = c.text(slices.Collect(strings.Lines(text.String())), query.FromLine, "use the same object and")
	return data, err
}
