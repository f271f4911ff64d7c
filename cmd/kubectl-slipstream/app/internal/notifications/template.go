// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxFile is the maximum size of a file with a template, in bytes. The server accepts less.
const maxFile = 1 << 20

// template has the flags of a template that is tried.
type template struct {
	file, title, text string
}

func (t *template) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&t.file, "filename", "f", "", "A YAML file with the fields title and text, as in spec.template of a sink, or - for standard input. "+
		"It replaces the template of the sink.")
	flags.StringVar(&t.title, "title", "", "The template of the title. With it or --text, the template of the sink is not used.")
	flags.StringVar(&t.text, "text", "", "The template of the text.")
	command.MarkFlagsMutuallyExclusive("filename", "title")
	command.MarkFlagsMutuallyExclusive("filename", "text")
}

// read returns the template, nil if the flags have none.
func (t *template) read(in io.Reader) (*v1alpha1.NotificationTemplate, error) {
	if t.file == "" {
		if t.title == "" && t.text == "" {
			return nil, nil
		}
		return &v1alpha1.NotificationTemplate{Title: t.title, Text: t.text}, nil
	}
	content, err := t.content(in)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	read := &v1alpha1.NotificationTemplate{}
	if err := yaml.UnmarshalStrict(content, read); err != nil {
		return nil, fmt.Errorf("--filename: %s must have the fields title and text, and no others: %w", t.file, err)
	}
	if read.Title == "" && read.Text == "" {
		return nil, fmt.Errorf("--filename: %s has neither title nor text", t.file)
	}
	return read, nil
}

// content returns the content of the file.
func (t *template) content(in io.Reader) ([]byte, error) {
	if t.file != "-" {
		file, err := os.Open(t.file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // It was only read.
		in = file
	}
	content, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = errors.New("it is larger than 1 MiB")
	}
	return content, err
}
