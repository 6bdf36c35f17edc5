/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package suggest

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxDistance is the number of letters that a name may differ in. It is cobra's default.
	maxDistance = 2
	// maxNames bounds the names in one message.
	maxNames = 3
)

// Commands asks whether the user meant a subcommand with a similar name. It is empty if there is none.
func Commands(of *cobra.Command, typed string) string {
	var names []string
	for _, command := range of.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return Names(typed, names)
}

// Objects asks whether the user meant an object with a similar name. It lists the objects, and is empty if it cannot.
func Objects(ctx context.Context, workspace client.Reader, list client.ObjectList, typed string) string {
	if err := workspace.List(ctx, list); err != nil {
		return ""
	}
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	return Names(typed, names)
}

// Names asks whether the user meant one of the names. It is empty if none is similar.
func Names(typed string, names []string) string {
	// cobra compares names of commands only.
	parent := &cobra.Command{SuggestionsMinimumDistance: maxDistance}
	for _, name := range names {
		parent.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := parent.SuggestionsFor(typed)
	if len(found) == 0 || typed == "" {
		return ""
	}
	return ` (did you mean "` + strings.Join(found[:min(len(found), maxNames)], `" or "`) + `"?)`
}
