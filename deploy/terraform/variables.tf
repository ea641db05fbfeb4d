variable "name" {
  type        = string
  description = "The stack's name"
}

variable "stream_arn" {
  type        = string
  description = "The table's stream: aws_dynamodb_table.orders.stream_arn. It needs the images that the routes look into; both, at best"
}

variable "code" {
  type        = string
  description = "A folder with what is in the zip for Lambda of a release, and the configuration"
}

variable "bucket" {
  type        = string
  description = "A bucket of this Region for the function's zip and the template"
}

variable "config_file" {
  type        = string
  default     = "sluice.json"
  description = "The configuration's name in that folder"
}

variable "template" {
  type        = string
  default     = null
  description = "The release's CloudFormation template, sluice.json; of this tree, if not said"
}

variable "architecture" {
  type        = string
  default     = "arm64"
  description = "The processor that the release's zip is for: arm64 or x86_64"
}

variable "filters" {
  type        = list(string)
  default     = []
  description = "The patterns of the mapping, five at most: what `sluice check --filters sluice.json` prints"

  validation {
    condition     = length(var.filters) <= 5
    error_message = "A mapping takes five filters."
  }
}

variable "archive_bucket" {
  type        = string
  default     = null
  description = "ARCHIVE_BUCKET in the configuration"
}

variable "archive_prefix" {
  type        = string
  default     = null
  description = "What the function may write in that bucket; expired/, if not said"
}

variable "replica_table_arn" {
  type        = string
  default     = null
  description = "REPLICA_TABLE and REPLICA_REGION in the configuration"
}

variable "totals_table_arn" {
  type        = string
  default     = null
  description = "TOTALS_TABLE in the configuration"
}

variable "side_table_arns" {
  type        = list(string)
  default     = []
  description = "Tables that the configuration names for ledgers, guards, tombstones and views"
}

variable "variables" {
  type        = map(string)
  default     = {}
  description = "Values for $${NAME} in the configuration. A secret is named, never written"
}

variable "secret_arns" {
  type        = list(string)
  default     = []
  description = "Secrets that the function may read"
}

variable "parameter_arns" {
  type        = list(string)
  default     = []
  description = "Parameters of Systems Manager that the function may read"
}

variable "alarm_topic_arn" {
  type        = string
  default     = null
  description = "Where the alarms go"
}

variable "kms_key_arn" {
  type        = string
  default     = null
  description = "Encrypts the logs, the queues, the buckets, the variables and the filters"
}

variable "subnet_ids" {
  type        = list(string)
  default     = []
  description = "Subnets that the function runs in, with security_group_ids"
}

variable "security_group_ids" {
  type        = list(string)
  default     = []
  description = "The function's security groups, with subnet_ids"
}

variable "settings" {
  type        = map(string)
  default     = {}
  description = "Values for other parameters of the template, by their names (docs/DEPLOY.md); they go before what is said above"
}
