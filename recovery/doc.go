// Package recovery drives failure recovery on one member.
package recovery
