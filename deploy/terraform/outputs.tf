output "stack_id" {
  value       = aws_cloudformation_stack.sluice.id
  description = "The stack with Sluice's resources"
}

output "outputs" {
  value       = aws_cloudformation_stack.sluice.outputs
  description = "What the template says of them, by its outputs' names"
}
