// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs of the local control plane: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubectl, from the module that pins them. It builds them once and keeps them in the user's cache.
package programs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
	"github.com/configbutler/slipstream/test/devcluster/progress"
)

// EnvControlPlane is the variable that selects the control plane: the folder below hack of the module that pins it. If it is empty, that is
// controlplane, the newest version.
const EnvControlPlane = "SLIPSTREAM_CONTROL_PLANE"

// ControlPlaneModule returns the folder of the module that pins the control plane. The folder root is that of the repository.
func ControlPlaneModule(root string) string {
	return filepath.Join(root, "hack", cmp.Or(os.Getenv(EnvControlPlane), "controlplane"))
}

// Set has the absolute paths of the control plane's programs.
type Set struct {
	// Version is the version of Kubernetes, such as v1.37.1.
	Version           string
	Etcd              string
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kubectl           string
}

// packages are the packages of the programs, in the order in which they are built. Each uses packages that the previous
// one has compiled.
var packages = []struct{ program, path string }{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
}

// withoutClouds is the build tag that leaves the drivers of cloud providers out of versions of Kubernetes that contain them, up to 1.30. They
// would take most of the time.
const withoutClouds = "providerless"

// pinFiles are the files of the module that determine what is built.
var pinFiles = []string{"go.mod", "go.sum"}

// Build returns the programs that the Go module in the folder module pins. It builds those that are not in the cache,
// which takes some minutes the first time. Several processes can call it concurrently: one builds, the others wait. The
// cache is slipstream/controlplane below os.UserCacheDir, with one folder for each version and content of the pins.
func Build(ctx context.Context, module string, reporter *progress.Reporter) (Set, error) {
	version, err := kubernetesVersion(ctx, module)
	if err != nil {
		return Set{}, err
	}
	folder, err := cacheFolder(module, version)
	if err != nil {
		return Set{}, err
	}
	bin := filepath.Join(folder, "bin")
	if complete(bin) {
		return newSet(bin, version), nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return Set{}, fmt.Errorf("failed to create the cache of the control plane: %w", err)
	}
	reporter.Sayf("building the control plane %s into %s (minutes, once)", version, folder)
	lock, err := filelock.Acquire(ctx, folder+".lock")
	if err != nil {
		return Set{}, err
	}
	err = buildMissing(ctx, module, bin, version, reporter)
	return newSet(bin, version), errors.Join(err, lock.Release())
}

// buildMissing builds the programs that are missing in the folder bin. The caller holds the lock of the cache.
func buildMissing(ctx context.Context, module, bin, version string, reporter *progress.Reporter) error {
	for _, each := range packages {
		program := filepath.Join(bin, each.program)
		if exists(program) {
			continue
		}
		err := reporter.Step("building "+each.program, func() error {
			return buildWhole(ctx, module, program, each.path, building{linkerFlags: stamp(version), tags: withoutClouds})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cacheFolder returns the cache's folder for the current content of the module.
func cacheFolder(module, version string) (string, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("failed to find the user's cache: %w", err)
	}
	pins, err := pinsKey(module)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "slipstream", "controlplane", version+"-"+pins), nil
}

// pinsKey returns the name of a module's builds for this architecture.
func pinsKey(module string) (string, error) {
	hash := sha256.New()
	for _, name := range pinFiles {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("failed to read the pins of %s: %w", filepath.Base(module), err)
		}
		// Writing to a hash never fails.
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	return fmt.Sprintf("%s-%s-%x", runtime.GOOS, runtime.GOARCH, hash.Sum(nil)[:6]), nil
}

// complete reports whether the folder bin has all programs.
func complete(bin string) bool {
	for _, each := range packages {
		if !exists(filepath.Join(bin, each.program)) {
			return false
		}
	}
	return true
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// newSet returns the paths of the programs of a version in the folder bin.
func newSet(bin, version string) Set {
	return Set{
		Version:           version,
		Etcd:              filepath.Join(bin, "etcd"),
		APIServer:         filepath.Join(bin, "kube-apiserver"),
		ControllerManager: filepath.Join(bin, "kube-controller-manager"),
		Scheduler:         filepath.Join(bin, "kube-scheduler"),
		Kubectl:           filepath.Join(bin, "kubectl"),
	}
}

// Minor returns the minor version of Kubernetes, such as 37.
func (s Set) Minor() int {
	_, rest, _ := strings.Cut(s.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	// The version is that of a module in the build list.
	number, _ := strconv.Atoi(minor)
	return number
}

// stamp returns the linker's flags that set the version of the programs. Without them it would be v0.0.0-master, which
// clients refuse to compare.
func stamp(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	values := [][2]string{
		{"gitVersion", version},
		{"gitMajor", major},
		{"gitMinor", minor},
		{"gitCommit", ""},
		{"gitTreeState", "clean"},
	}
	flags := []string{"-s", "-w"}
	for _, packagePath := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range values {
			flags = append(flags, "-X", packagePath+"."+value[0]+"="+value[1])
		}
	}
	return strings.Join(flags, " ")
}
