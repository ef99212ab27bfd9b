package data
