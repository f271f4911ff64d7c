// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// product is an image: the program that it contains, and what the image says about it.
type product struct {
	// name is the name of the image, with which the names of its files and of its default repository begin.
	name string
	// program is the name of the program in the image, and of its folder in cmd.
	program string
	// suffix is appended to the repository of the first image. It is also the name of the folder of the output, without the dash.
	suffix string
	// description is the description in the labels.
	description string
}

// products are all images. The first has no suffix.
var products = []product{
	{name: "slipstream", program: "slipstream", description: "Keeps Git branches equal to live Kubernetes objects"},
	{
		name: "slipstream-dashboard", program: "kubectl-slipstream", suffix: "-dashboard",
		description: "Shows in the browser what Slipstream does and what waits for a user",
	},
}

// choose returns the products with these names, separated by commas.
func choose(names string) ([]product, error) {
	var chosen []product
	for _, name := range strings.Split(names, ",") {
		at := slices.IndexFunc(products, func(p product) bool { return p.name == name })
		if at < 0 {
			return nil, fmt.Errorf("-images %q: want %s, with commas between", names, allNames())
		}
		chosen = append(chosen, products[at])
	}
	return chosen, nil
}

// allNames returns the names of all products, with commas between.
func allNames() string {
	var names []string
	for _, each := range products {
		names = append(names, each.name)
	}
	return strings.Join(names, ",")
}

// folder returns the folder for the files of the image.
func (p product) folder(output string) string {
	return filepath.Join(output, strings.TrimPrefix(p.suffix, "-"))
}

// file returns the name of the file for an architecture.
func (p product) file(arch, extension string) string { return p.name + "-linux-" + arch + extension }
