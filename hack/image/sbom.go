// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// newBOM returns the content of an image with the program, in CycloneDX's JSON: the modules that were linked into it
// according to its build information, the standard library, and the certificate authorities. Licences are included only
// where they are certain.
func newBOM(p program) ([]byte, error) {
	content, err := os.ReadFile(p.path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	sum := sha256.Sum256(content)
	components, err := parts(p.info)
	if err != nil {
		return nil, err
	}
	subject := library(p.info.Main.Path, p.version())
	subject.Type = cdx.ComponentTypeApplication
	subject.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	subject.Licenses = licence("Apache-2.0")

	bom := cdx.NewBOM()
	// The same program has the same serial number.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).URN()
	bom.Metadata = &cdx.Metadata{
		Timestamp: p.time.Format(time.RFC3339), Component: &subject,
		Properties: &[]cdx.Property{{Name: "platform", Value: "linux/" + p.arch}, {Name: "revision", Value: p.revision}},
	}
	bom.Components = &components
	references := make([]string, 0, len(components))
	for _, component := range components {
		references = append(references, component.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: subject.BOMRef, Dependencies: &references}}
	var file bytes.Buffer
	// Scanners do not support newer versions of the format yet.
	err = cdx.NewBOMEncoder(&file, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	if err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return file.Bytes(), nil
}

// parts returns the components of the program and of the rest of the image.
func parts(info *debug.BuildInfo) ([]cdx.Component, error) {
	standard := library("std", strings.TrimPrefix(info.GoVersion, "go"))
	standard.Licenses = licence("BSD-3-Clause")
	components := []cdx.Component{standard}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		component, err := fromModule(module)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	authorities, err := fromThisProgram(rootsModule)
	if err != nil {
		return nil, err
	}
	authorities.Type = cdx.ComponentTypeData
	authorities.Description = "certificates of public authorities, in /" + rootsPath
	return append(components, authorities), nil
}

// fromThisProgram returns the component of a module that is linked into this command and not into the program.
func fromThisProgram(path string) (cdx.Component, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return fromModule(module)
			}
		}
	}
	return cdx.Component{}, fmt.Errorf("version of the module %s not found in the build information", path)
}

// fromModule returns the component of a module, with the checksum of its files as in go.sum.
func fromModule(module *debug.Module) (cdx.Component, error) {
	component := library(module.Path, module.Version)
	encoded, found := strings.CutPrefix(module.Sum, "h1:")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil {
		return component, fmt.Errorf("sum %q of the module %s does not have the type h1", module.Sum, module.Path)
	}
	component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return component, nil
}

func library(path, version string) cdx.Component {
	address := "pkg:golang/" + path + "@" + url.QueryEscape(version)
	return cdx.Component{BOMRef: address, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: address}
}

func licence(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// writeBOMs writes the bill of materials of each program to the folder.
func writeBOMs(folder string, programs []program) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	for _, program := range programs {
		bom, err := newBOM(program)
		if err != nil {
			return err
		}
		path := filepath.Join(folder, program.product.file(program.arch, ".cdx.json"))
		if err := os.WriteFile(path, bom, 0o644); err != nil {
			return fmt.Errorf("write a bill of materials: %w", err)
		}
		logf("wrote %s", path)
	}
	return nil
}
