// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pictures

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/pagetest"
)

// folder is where the pictures are written.
var folder = flag.String("folder", "", "folder of the pictures; none are taken if empty")

// The largest files, in bytes: README loads one animation and a few pictures.
const (
	maxPicture   = 150_000
	maxAnimation = 1_500_000
)

// TestPictures takes all pictures, as `make pictures` does.
func TestPictures(t *testing.T) {
	if *folder == "" {
		t.Skip("make pictures takes the pictures: it names their folder")
	}
	for _, name := range []string{"cwebp", "img2webp"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not in PATH: the pictures need the package webp of Debian", name)
		}
	}
	b := pagetest.NewBrowser(t, "pictures.mjs")
	s := newStory(t)
	for _, scenario := range b.Scenarios(t) {
		t.Run(scenario, func(t *testing.T) {
			b.Run(t, scenario, func(name string, arguments json.RawMessage) (any, error) { return s.step(t, name, arguments) })
		})
	}
}

// frame is a PNG file, and for how many milliseconds an animation shows it.
type frame struct {
	File string
	Time int
}

// step does what a scenario asks for.
func (s *story) step(t *testing.T, name string, arguments json.RawMessage) (any, error) {
	t.Helper()
	var args struct {
		User string
		Line []string
		// Name is the name of a picture, made of one frame or several.
		Name   string
		Frames []frame
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, err
	}
	switch name {
	case "link":
		return s.dashboard.Link(t), nil
	case "kubectl":
		out, err := s.person(t, args.User).Kubectl.Run(t.Context(), args.Line...)
		return strings.TrimSpace(out), err
	case "folder":
		return t.TempDir(), nil
	case "picture":
		return nil, convert(t, args.Name, args.Frames)
	}
	return nil, fmt.Errorf("unknown step %s", name)
}

// convert writes the frames of a picture as WebP.
func convert(t *testing.T, name string, frames []frame) error {
	t.Helper()
	output, limit := filepath.Join(*folder, name+".webp"), int64(maxPicture)
	command := exec.CommandContext(t.Context(), "cwebp", "-quiet", "-near_lossless", "60", "-m", "6", frames[0].File, "-o", output)
	if len(frames) > 1 {
		limit = maxAnimation
		arguments := []string{"-loop", "0"}
		for _, each := range frames {
			arguments = append(arguments, "-lossless", "-m", "6", "-d", strconv.Itoa(each.Time), each.File)
		}
		command = exec.CommandContext(t.Context(), "img2webp", append(arguments, "-o", output)...)
	}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command.Path, err, out)
	}
	info, err := os.Stat(output)
	if err != nil {
		return err
	}
	t.Logf("%s: %d KB", output, info.Size()/1000)
	if info.Size() > limit {
		return fmt.Errorf("%s has %d bytes, more than %d", output, info.Size(), limit)
	}
	return nil
}
