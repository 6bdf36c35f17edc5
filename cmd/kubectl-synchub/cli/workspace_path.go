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

package cli

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
)

// maxPathLength is the longest workspace path that an EdgePlacement can have, in bytes.
const maxPathLength = 512

var workspacePath = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// ValidatePath returns an error unless the text can be the path of a workspace.
func ValidatePath(path string) error {
	if len(path) > maxPathLength || !workspacePath.MatchString(path) {
		return fmt.Errorf("%q is not the path of a workspace, such as root:teams:web", path)
	}
	return nil
}

// pathValue is the value of a flag that has the path of a workspace.
type pathValue string

func (p *pathValue) String() string { return string(*p) }

// Type returns the type for the help.
func (p *pathValue) Type() string { return "string" }

// Set accepts only a path.
func (p *pathValue) Set(text string) error {
	*p = pathValue(text)
	return ValidatePath(text)
}

// AddFlags adds the flags that select the workspace.
func (o *WorkspaceOptions) AddFlags(command *cobra.Command) {
	o.Cluster.AddFlags(command.Flags())
	command.Flags().Var((*pathValue)(&o.workspace), "workspace", "path of the workspace of kcp to use, such as root:shop, instead of the workspace of the kubeconfig")
	_ = command.RegisterFlagCompletionFunc("workspace", cobra.NoFileCompletions)
}
