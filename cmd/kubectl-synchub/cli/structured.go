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
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// StructuredOutput is the flag -o of commands that print a document of their own for programs, not objects of a server.
type StructuredOutput string

const (
	outputJSON StructuredOutput = "json"
	outputYAML StructuredOutput = "yaml"
)

// AddFlag adds the flag. The present value is the default. forPeople are further formats, which [StructuredOutput.Print] does not print.
func (f *StructuredOutput) AddFlag(command *cobra.Command, forPeople ...string) {
	command.Flags().StringVarP((*string)(f), "output", "o", string(*f), "")
	SetFormats(command, append([]string{string(outputJSON), string(outputYAML)}, forPeople...))
}

// Print prints a document. done is false if people read the output.
func (f *StructuredOutput) Print(out io.Writer, document any) (done bool, err error) {
	var content []byte
	switch *f {
	case outputJSON:
		content, err = json.MarshalIndent(document, "", "    ")
		content = append(content, '\n')
	case outputYAML:
		content, err = yaml.Marshal(document)
	default:
		return false, nil
	}
	if err == nil {
		_, err = out.Write(content)
	}
	return true, err
}
