// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/configbutler/slipstream/pkg/store/failpoint"
	"github.com/configbutler/slipstream/test/devcluster/filelock"
)

// Product builds the program of the package ./path of the module in the folder root, unless it is up to date, and returns
// its absolute path. It has the race detector and failpoints if the caller was built with them, so that both are compiled
// once. Product can be called by several processes concurrently.
func Product(ctx context.Context, root, path string) (string, error) {
	return product(ctx, root, path, failpoint.Enabled)
}

// once has a function for each program that this process has asked ProductOnce for.
var once sync.Map

// ProductOnce is Product for a process during which the source does not change: it builds when the process needs the program for the first
// time. The go command takes most of a second of processor time also for a program that is up to date.
func ProductOnce(ctx context.Context, root, path string) (string, error) {
	build, _ := once.LoadOrStore(filepath.Join(root, path), sync.OnceValues(func() (string, error) {
		return Product(context.WithoutCancel(ctx), root, path)
	}))
	return build.(func() (string, error))()
}

// ProductWithFailpoints is Product with failpoints also if the caller has none.
func ProductWithFailpoints(ctx context.Context, root, path string) (string, error) {
	return product(ctx, root, path, true)
}

// Released builds a program with the build tag and the linker flags that programs have in the image, which make it smaller.
func Released(ctx context.Context, root, path string) (string, error) {
	return buildProduct(ctx, root, path, "released", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w -funcalign=16")
}

// product builds into a folder for each set of flags. They differ from root/bin, where make and readers of the
// documentation build with their own flags.
func product(ctx context.Context, root, path string, failpoints bool) (string, error) {
	folder, flags := "plain", []string(nil)
	if raceDetector {
		folder, flags = "race", append(flags, "-race")
	}
	if failpoints {
		folder, flags = folder+"-failpoints", append(flags, "-tags=failpoints")
	}
	return buildProduct(ctx, root, path, folder, flags...)
}

// buildProduct builds into a folder of root/bin.
func buildProduct(ctx context.Context, root, path, folder string, flags ...string) (string, error) {
	bin := filepath.Join(root, "bin", folder)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("failed to create the folder of the programs: %w", err)
	}
	program := filepath.Join(bin, filepath.Base(path))
	lock, err := filelock.Acquire(ctx, filepath.Join(bin, "."+filepath.Base(path)+".lock"))
	if err != nil {
		return "", err
	}
	err = goBuild(ctx, root, program, "./"+path, flags...)
	return program, errors.Join(err, lock.Release())
}

// ModuleRoot returns the folder of the nearest go.mod at or above the folder below.
func ModuleRoot(below string) (string, error) {
	folder, err := filepath.Abs(below)
	if err != nil {
		return "", fmt.Errorf("failed to find the module's folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("no go.mod at or above %s", below)
		}
		folder = parent
	}
}

// goBuild builds one package of the module in the folder module into the file program. Without flags it builds like a
// plain `go build`, so that tests, vet and programs share one build cache.
func goBuild(ctx context.Context, module, program, packagePath string, flags ...string) error {
	arguments := append([]string{"build", "-o", program}, flags...)
	if _, err := runGo(ctx, module, append(arguments, packagePath)...); err != nil {
		return fmt.Errorf("failed to build %s: %w", packagePath, err)
	}
	return nil
}

// building is how a program of another project is built.
type building struct {
	linkerFlags string
	// tags are build tags, separated by commas; optional.
	tags string
	// cgo compiles with cgo, whatever the environment says.
	cgo bool
}

// buildWhole builds one package of the module in the folder module. It creates the file program atomically.
func buildWhole(ctx context.Context, module, program, packagePath string, how building) error {
	var env []string
	if how.cgo {
		env = []string{"CGO_ENABLED=1"}
	}
	unfinished := program + ".unfinished"
	arguments := []string{"build", "-o", unfinished, "-ldflags", how.linkerFlags, "-tags", how.tags, packagePath}
	if _, err := runGoWith(ctx, module, env, arguments...); err != nil {
		return fmt.Errorf("failed to build %s: %w", packagePath, err)
	}
	if err := os.Rename(unfinished, program); err != nil {
		return fmt.Errorf("failed to rename the new program %s: %w", filepath.Base(program), err)
	}
	return nil
}

// kubernetesVersion returns the version of Kubernetes that the module pins, such as
// v1.37.1.
func kubernetesVersion(ctx context.Context, module string) (string, error) {
	out, err := runGo(ctx, module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", fmt.Errorf("failed to read the version of the control plane: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// ModuleFolder returns the folder with the files of another module, in the version that
// the module in the folder module pins. It downloads them if the module cache does not
// have them.
func ModuleFolder(ctx context.Context, module, path string) (string, error) {
	out, err := runGo(ctx, module, "mod", "download", "-json", path)
	if err != nil {
		return "", fmt.Errorf("failed to find the files of %s: %w", path, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", fmt.Errorf("failed to find the files of %s: %w", path, err)
	}
	return found.Dir, nil
}

// runGo runs the go command in a module's folder and returns its output. An error contains its error output.
func runGo(ctx context.Context, module string, arguments ...string) (string, error) {
	return runGoWith(ctx, module, nil, arguments...)
}

// runGoWith is runGo with KEY=VALUE lines added to the environment.
func runGoWith(ctx context.Context, module string, env []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = module
	// Workspace files of parent folders are ignored.
	command.Env = slices.Concat(os.Environ(), []string{"GOWORK=off"}, env)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", arguments[0], err, stderr.String())
	}
	return stdout.String(), nil
}
