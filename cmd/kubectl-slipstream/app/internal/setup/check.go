// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/kube/buildversion"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// checkTimeout limits the requests of one check.
const checkTimeout = 15 * time.Second

// level is how good the result of a check is.
type level string

const (
	levelOK   level = "ok"
	levelWarn level = "warn"
	levelFail level = "fail"
)

// result is a line of the output.
type result struct {
	Level level  `json:"level"`
	Check string `json:"check"`
	// Message says what was found.
	Message string `json:"message"`
	// Next is what to do, empty if there is nothing.
	Next string `json:"next,omitempty"`
}

// check is the command check.
type check struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	output string

	namespace string
	discovery discovery.DiscoveryInterface
	dynamic   dynamic.Interface
	results   []result
}

func newCheck(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	c := &check{IOStreams: streams, config: config}
	command := &cobra.Command{
		Use:   "check",
		Short: "Check whether the server is installed and works, and what you may do",
		Long: "Check with your rights whether the API is registered and available, whether the versions of server and plugin fit, whether the\n" +
			"cluster reports the authors of changes, which objects are not ready, and what you may do in the namespace. Nothing is written.\n" +
			"What you may not read is a warning. Exit codes: 0 without a failure, 2 with one.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	command.Flags().StringVarP(&c.output, "output", "o", "", "json, or empty for lines.")
	return command
}

func (c *check) run(ctx context.Context) error {
	if c.output != "" && c.output != "json" {
		return fmt.Errorf("--output is %q: it is json or empty", c.output)
	}
	if err := c.connect(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) bool{
		c.checkCluster, c.checkAPI, c.checkVersion, c.checkObjects, c.checkAuthors, c.checkRights,
	} {
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		proceed := step(limited)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if !proceed {
			break
		}
	}
	if err := c.report(c.Out); err != nil {
		return err
	}
	failed := 0
	for _, each := range c.results {
		if each.Level == levelFail {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(c.results))
	}
	return nil
}

// connect sets the clients.
func (c *check) connect() (err error) {
	if c.namespace, _, err = c.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return err
	}
	config.Timeout = checkTimeout
	if c.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return err
	}
	c.dynamic, err = dynamic.NewForConfig(config)
	return err
}

func (c *check) ok(about, format string, args ...any) {
	c.results = append(c.results, result{levelOK, about, fmt.Sprintf(format, args...), ""})
}

func (c *check) warn(about, message, next string) {
	c.results = append(c.results, result{levelWarn, about, message, next})
}

func (c *check) fail(about, message, next string) {
	c.results = append(c.results, result{levelFail, about, message, next})
}

// report prints the results.
func (c *check) report(out io.Writer) error {
	if c.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"results": c.results})
	}
	var problems []error
	for _, each := range c.results {
		_, err := fmt.Fprintf(out, "%-4s  %s: %s\n", each.Level, each.Check, printable.Line(each.Message))
		problems = append(problems, err)
		if each.Next != "" {
			_, err := fmt.Fprintf(out, "      next: %s\n", printable.Line(each.Next))
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// oneLine returns the first line of an error.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// pluginVersion is the version of this program.
func pluginVersion() string { return buildversion.Version() }
