// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// pluginName is the name under which kubectl finds the plugin.
const pluginName = "kubectl-slipstream"

// installHooks is the command install-hooks.
type installHooks struct {
	genericiooptions.IOStreams
	dir   string
	force bool
}

func newInstallHooks(streams genericiooptions.IOStreams) *cobra.Command {
	i := &installHooks{IOStreams: streams}
	command := &cobra.Command{
		Use:   "install-hooks",
		Short: "Create the links for shell completion and for kubectl create sync",
		Long: "Create links to the plugin in a folder of PATH: kubectl_complete-slipstream, which kubectl asks for completions of\n" +
			"kubectl slipstream, and kubectl-create-sync, which it runs for kubectl create sync. kubectl itself completes only if the\n" +
			"completion of kubectl is set up in your shell: kubectl completion --help.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return i.run() },
	}
	command.Flags().StringVar(&i.dir, "dir", "", "Folder for the links. Defaults to the folder in which the plugin was found.")
	command.Flags().BoolVar(&i.force, "force", false, "Replace files of these names that are no links to the plugin.")
	return command
}

func (i *installHooks) run() error {
	program, err := findPlugin()
	if err != nil {
		return err
	}
	if i.dir == "" {
		i.dir = filepath.Dir(program)
	}
	if found, err := os.Stat(i.dir); err != nil || !found.IsDir() {
		return fmt.Errorf("--dir is %q: it must be a folder that exists, such as one in PATH", i.dir)
	}
	for _, name := range slices.Sorted(maps.Keys(cli.Hooks())) {
		if err := i.link(program, filepath.Join(i.dir, name+filepath.Ext(program))); err != nil {
			return err
		}
	}
	if found, err := exec.LookPath("kubectl_complete-slipstream"); err != nil || filepath.Dir(found) != filepath.Clean(i.dir) {
		_, _ = fmt.Fprintf(i.ErrOut, "kubectl finds the links only if %s is in PATH, before other folders that have them\n", i.dir)
	}
	return nil
}

// findPlugin returns the path of the plugin in PATH, where tools such as krew keep a link to the installed version, or that of this program.
func findPlugin() (string, error) {
	this, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	found, err := exec.LookPath(pluginName)
	if err != nil {
		return this, nil //nolint:nilerr // The plugin need not be in PATH.
	}
	if found, err = filepath.Abs(found); err != nil || !sameFile(found, this) {
		return this, err
	}
	return found, nil
}

// sameFile reports whether two paths lead to the same file.
func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// link makes a link to the program, unless there is one.
func (i *installHooks) link(program, path string) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case sameFile(path, program):
		_, err := fmt.Fprintf(i.Out, "%s unchanged\n", path)
		return err
	case !i.force:
		return fmt.Errorf("%s is no link to %s: --force replaces it", path, program)
	default:
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	create := os.Symlink
	if runtime.GOOS == "windows" {
		create = os.Link // Symbolic links need a right there that users usually lack.
	}
	if err := create(program, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(i.Out, "%s created\n", path)
	return err
}
