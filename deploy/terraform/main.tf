# Sluice on a table, from Terraform or OpenTofu. The resources are those of ../cloudformation/sluice.json, as a stack: the function's
# rights, the mapping, the alarms and the dashboard are described there, and nowhere else.
terraform {
  required_version = ">= 1.6"
  required_providers {
    archive = {
      source  = "hashicorp/archive"
      version = ">= 2.4"
    }
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

data "aws_region" "here" {}

data "aws_partition" "here" {}

# The folder has programs: every file keeps the right to run.
data "archive_file" "code" {
  type             = "zip"
  source_dir       = var.code
  output_path      = "${path.root}/.terraform/${var.name}.zip"
  output_file_mode = "0755"
}

resource "aws_s3_object" "code" {
  bucket      = var.bucket
  key         = "${var.name}/${data.archive_file.code.output_sha256}.zip"
  source      = data.archive_file.code.output_path
  source_hash = data.archive_file.code.output_sha256
}

# It is longer than what can be given in the call.
resource "aws_s3_object" "template" {
  bucket      = var.bucket
  key         = "${var.name}/${filesha256(local.template)}.json"
  source      = local.template
  source_hash = filesha256(local.template)
}

locals {
  template = coalesce(var.template, "${path.module}/../cloudformation/sluice.json")
  given = {
    CodeBucket          = var.bucket
    CodeKey             = aws_s3_object.code.key
    ConfigFile          = var.config_file
    SourceStreamArn     = var.stream_arn
    Architecture        = var.architecture
    ArchiveBucketName   = var.archive_bucket
    ArchivePrefix       = var.archive_prefix
    ReplicaTableArn     = var.replica_table_arn
    TotalsTableArn      = var.totals_table_arn
    SideTableArns       = join(",", var.side_table_arns)
    Variables           = length(var.variables) == 0 ? null : jsonencode(var.variables)
    SecretArns          = join(",", var.secret_arns)
    ParameterArns       = join(",", var.parameter_arns)
    AlarmTopicArn       = var.alarm_topic_arn
    KmsKeyArn           = var.kms_key_arn
    VpcSubnetIds        = join(",", var.subnet_ids)
    VpcSecurityGroupIds = join(",", var.security_group_ids)
  }
  filters = { for n, filter in var.filters : "Filter${n + 1}" => filter }
}

resource "aws_cloudformation_stack" "sluice" {
  name         = var.name
  template_url = "https://${var.bucket}.s3.${data.aws_region.here.name}.${data.aws_partition.here.dns_suffix}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]
  # What is not given has the template's default.
  parameters = merge({ for name, value in local.given : name => value if value != null && value != "" }, local.filters, var.settings)
}
